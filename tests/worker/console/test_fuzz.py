"""Whatever the schema of the API allows is answered without a failure, and a read changes nothing."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from tests.worker.cli.test_plans import made
from tests.worker.console.asked import started
from tests.worker.console.test_reading import rows_of_every_table

STREAMS = ("/api/runs/{run}/events", "/api/backtests/{number}/events")  # may have no end
LEAVE_OUT = ("/api/backtests",)  # a process each
EXAMPLES = 10


def test_requests_of_the_schema_fail_nowhere_and_reads_change_nothing(planted):
    made(planted)
    with started() as url:
        schema = schemathesis.openapi.from_url(f"{url}/api/openapi.json")
        operations: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
        reads = [item for item in operations if item.method.upper() == "GET" and item.path not in STREAMS]
        writes = [item for item in operations if item.method.upper() != "GET" and item.path not in LEAVE_OUT]
        assert len(reads) > 15
        assert len(writes) > 5
        before = rows_of_every_table()
        for operation in reads:
            ask_with_examples(operation)
        assert rows_of_every_table() == before
        for operation in writes:
            ask_with_examples(operation)


def ask_with_examples(operation):
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def answered(case):
        case.call_and_validate(checks=[not_a_server_error])

    answered()
