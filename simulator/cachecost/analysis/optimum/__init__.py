"""The cheapest legal plan of breakpoints, TTLs and keep-alives for calls that are known, and its lower bound.

`plan_evaluator` renders the calls once and runs plans, `tree` and `ttl_costs` say what a block costs by itself,
`lower_bound` and `planner` use them, `plan_run` improves a plan, `extras` and `exact` add calls and search small cases.
Open `optimum.py` first.
"""
