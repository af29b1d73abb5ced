"""What the agent's prompts cost."""

from agent import answer

QUESTIONS = ("Can I sail from Kiel to Fehmarn today?", "And back tomorrow morning?")


def test_two_questions_stay_cheap(cache_cost):
    answer(cache_cost.client(), QUESTIONS)
    cache_cost.assert_costs_at_most("0.01")


def test_the_head_of_the_prompt_never_changes(cache_cost):
    answer(cache_cost.client(), QUESTIONS)
    cache_cost.assert_prefix_stable("tools", "system")
    cache_cost.assert_cache_hit_rate_at_least(0.7)
    cache_cost.assert_no_lint()
