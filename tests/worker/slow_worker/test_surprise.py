"""Surprise between two slots: the worker examines it once, under the gates, and says why nothing ran."""

from tests.worker.slow_worker.prepared import DAY, START, played, resolved, settings, watched

HOUR = DAY // 24


def trades(*outcomes):
    """One trade an hour from the second day on."""
    made = [resolved(n, START + DAY + (n + 1) * HOUR) for n in range(len(outcomes))]
    return [item.model_copy(update={"r": r}) for item, r in zip(made, outcomes, strict=True)]


async def looked(tmp_path, episodes, hours):
    async with watched(tmp_path, episodes) as one:
        for n in hours:
            await one.look_at(START + n * HOUR)
        return [
            (claim.key.slot, claim.state, claim.reason, claim.facts.get("trigger"))
            for claim in await one.claims()
        ]


SLOT = (START + DAY, "skipped", "insufficient_episodes", None)


def test_worker_examines_accumulated_surprise_early_once_and_says_which_gate_is_shut(tmp_path):
    questions = (START + DAY + 3 * HOUR, "skipped", "insufficient_episodes", "surprise")
    huge = trades(-15.0, -15.0, -15.0, -1.0, -1.0, -1.0)
    assert played(looked(tmp_path, huge, range(22, 46))) == [SLOT, questions]


def test_worker_that_looks_later_names_the_same_moment_of_surprise(tmp_path):
    huge = trades(-15.0, -15.0, -15.0, -1.0, -1.0, -1.0)
    shown = played(looked(tmp_path, huge, (24, 40)))
    assert shown[-1] == (START + DAY + 3 * HOUR, "skipped", "insufficient_episodes", "surprise")


def test_worker_examines_nothing_early_without_surprise(tmp_path):
    assert played(looked(tmp_path, trades(*[-1.0] * 15), range(22, 46))) == [SLOT]


def test_worker_surprise_that_was_examined_does_not_keep_a_full_batch_waiting(tmp_path):
    shown = played(looked(tmp_path, trades(*[-3.0] * 22), range(22, 48)))
    assert shown[1:] == [
        (START + DAY + 14 * HOUR, "skipped", "insufficient_episodes", "surprise"),
        (START + DAY + 20 * HOUR, "done", None, "surprise"),
    ]


def test_worker_takes_the_surprise_limit_from_the_settings(tmp_path):
    async def scenario():
        async with watched(tmp_path, trades(*[-1.0] * 6), settings(surprise_limit_r=5.0)) as one:
            for n in range(22, 46):
                await one.look_at(START + n * HOUR)
            return [claim.facts.get("trigger") for claim in await one.claims()]

    assert played(scenario()) == [None, "surprise"]
