"""The report of a scenario as a source, beside it the same of another revision."""

from __future__ import annotations

from dataclasses import dataclass

from cachecost.live.viewer.source import Answer, PageSource
from cachecost.views.viewer.run import Report, run_page_object
from cachecost.views.viewer.sessions import start_object


@dataclass(slots=True)
class ReportSource(PageSource):
    """The page of a run. `other` is the report of the revision `other_title`."""

    report: Report
    command: str = "cachecost view"
    other: Report | None = None
    other_title: str = ""

    def start(self) -> Answer:
        return start_object("run", str(self.report.result["scenario"]), self.command)

    def run(self) -> Answer:
        return run_page_object(self.report, self.other, self.other_title)
