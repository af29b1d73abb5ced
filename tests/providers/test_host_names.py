"""Model ids as each host writes them, and the endpoint that they tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.rulefile import catalogue, hosts
from cachecost.providers.rules import RuleBook

BOOK = RuleBook()
ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile"

# host, id as written there, model, endpoint, price modifiers
IDS = f"""
bedrock       claude-opus-4-6                                     claude-opus-4-6    in-region  regional
bedrock       claude-opus-4.6                                     claude-opus-4-6    in-region  regional
bedrock       anthropic.claude-opus-4-6-v1                        claude-opus-4-6    in-region  regional
bedrock       us.anthropic.claude-opus-4-6-v1                     claude-opus-4-6    us         regional
bedrock       global.anthropic.claude-opus-4-6-v1                 claude-opus-4-6    global
bedrock       us.anthropic.claude-sonnet-4-6                      claude-sonnet-4-6  us         regional
bedrock       anthropic.claude-opus-5                             claude-opus-5      in-region  regional
bedrock       eu.anthropic.claude-sonnet-4-5-20250929-v1:0        claude-sonnet-4-5  eu         regional
bedrock       us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0    claude-sonnet-4-5  us-gov     regional
bedrock       jp.anthropic.claude-haiku-4-5-20251001-v1:0         claude-haiku-4-5   jp         regional
bedrock       anthropic.claude-3-5-sonnet-20241022-v2:0           claude-3-5-sonnet  in-region  regional
bedrock       anthropic.claude-3-5-sonnet-20240620-v1:0:200k      claude-3-5-sonnet  in-region  regional
bedrock       apac.anthropic.claude-3-7-sonnet-20250219-v1:0      claude-3-7-sonnet  apac       regional
bedrock       {ARN}/us.anthropic.claude-sonnet-4-6                claude-sonnet-4-6  us         regional
bedrock       {ARN}/global.anthropic.claude-opus-4-5-20251101-v1:0  claude-opus-4-5  global
bedrock       arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-opus-5  claude-opus-5  in-region  regional
google-cloud  claude-opus-4-5@20251101                            claude-opus-4-5    global
google-cloud  claude-opus-4@20250514                              claude-opus-4      global
google-cloud  claude-opus-4-6@default                             claude-opus-4-6    global
google-cloud  claude-3-5-sonnet-v2@20241022                       claude-3-5-sonnet  global
google-cloud  claude-3-5-sonnet@20240620                          claude-3-5-sonnet  global
google-cloud  locations/global/publishers/anthropic/models/claude-opus-5  claude-opus-5  global
google-cloud  locations/us-east5/claude-opus-4-5@20251101         claude-opus-4-5    us-east5   regional
google-cloud  projects/p-1/locations/eu/publishers/anthropic/models/claude-sonnet-4-6  claude-sonnet-4-6  eu  regional
foundry       claude-opus-5-5                                     claude-opus-5-5    standard
foundry       claude-opus-5-5-fast                                claude-opus-5-5    fast       fast
"""


@pytest.mark.parametrize("line", IDS.strip().splitlines())
def test_an_id_as_its_host_writes_it(line: str) -> None:
    host, written, name, endpoint, *modifiers = line.split()
    found = catalogue(host).model(written)
    assert (found.name, found.endpoint, list(found.modifiers)) == (name, endpoint, modifiers)
    rules = BOOK.rules(host, written)
    assert (rules.model, rules.endpoint) == (found.id, endpoint)


UNKNOWN = [
    ("bedrock", "us.anthropic.claude-opus-46", "{claude-opus-4-6}"),
    ("bedrock", "mars.anthropic.claude-opus-5", "{claude-opus-5}"),
    ("bedrock", "us.claude-opus-5", "{claude-opus-5}"),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20991231-v1:0", "{claude-sonnet-4-5-20250929}"),
    ("bedrock", f"{ARN.replace('inference', 'application-inference')}/abc123", ""),
    ("google-cloud", "claude-opus-4-5@20991231", "{claude-opus-4-5}"),
    ("google-cloud", "locations/us east5/claude-opus-5", ""),
    ("google-cloud", "us.anthropic.claude-opus-5", "{claude-opus-5}"),
    ("anthropic", "us.anthropic.claude-opus-5", "{claude-opus-5}"),
    ("foundry", "my-deployment", ""),
]


@pytest.mark.parametrize(("host", "name", "near"), UNKNOWN)
def test_an_id_that_the_host_does_not_write(host: str, name: str, near: str) -> None:
    with pytest.raises(CannotEvaluate) as caught:
        BOOK.rules(host, name)
    offered = near.replace("{", " (did you mean '").replace("}", "'?)")
    assert str(caught.value) == f"unknown model '{name}' on host {host}{offered}"


def test_endpoints_share_no_entry_and_spellings_of_one_do() -> None:
    same = [
        "us.anthropic.claude-sonnet-4-6",
        f"{ARN}/us.anthropic.claude-sonnet-4-6",
        "us.anthropic.claude-sonnet-4-6-v1",
    ]
    assert len({BOOK.rules("bedrock", name).model for name in same}) == 1
    apart = ["us.anthropic.claude-sonnet-4-6", "eu.anthropic.claude-sonnet-4-6", "global.anthropic.claude-sonnet-4-6"]
    assert len({BOOK.rules("bedrock", name).model for name in [*apart, "claude-sonnet-4-6"]}) == 4


ENDPOINTS = {
    "bedrock": ["us", "eu", "jp", "au", "apac", "in", "us-gov", "global", "in-region"],
    "google-cloud": ["global", "us", "eu", "us-east5", "europe-west1", "asia-southeast1"],
    "foundry": ["standard", "fast"],
}


@given(st.data())
def test_an_id_that_was_written_is_read_again(data: st.DataObject) -> None:
    """Prices are asked for by the resolved id: it has to mean the same model at the same endpoint."""
    host = data.draw(st.sampled_from(sorted(ENDPOINTS)))
    model = data.draw(st.sampled_from(sorted(catalogue(host).models)))
    endpoint = data.draw(st.sampled_from(ENDPOINTS[host]))
    naming = catalogue(host).naming
    assert naming is not None
    found = catalogue(host).model(naming.write(model, endpoint))
    assert (found.name, found.endpoint or naming.default) == (model, endpoint)
    assert catalogue(host).model(found.id) == found
    assert found.modifiers == naming.modifiers(endpoint)


def test_no_name_of_a_host_means_two_models() -> None:
    for host in hosts():
        names = [name for model in catalogue(host).models.values() for name in (model.id, *model.aliases)]
        assert len(names) == len(set(names))
