from schemas.model_table import answers_for
from tests.each_case import check_each


@check_each(
    ("answered", "requested", "right"),
    [
        ("claude-x", "claude-x", True),
        ("claude-x-20250929", "claude-x", True),
        ("claude-x@20250929", "claude-x", True),
        ("gpt-x-2025-09-29", "gpt-x", True),
        ("gpt-x-0613", "gpt-x", True),
        ("claude-x-20250929", "claude-x-latest", True),
        ("claude-x-latest", "claude-x-latest", True),
        ("vendor/x-20250929", "vendor/x", True),
        ("models/gemini-x", "gemini-x", True),
        ("models/gemini-x-05-06", "gemini-x", True),
        ("gemini-x", "models/gemini-x", True),
        ("qwen3:latest", "qwen3", True),
        ("vendor/x", "vendor/x:free", True),
        ("vendor/x-2025-09-29", "vendor/x:free", True),
        ("x-2025-09-29", "vendor/x", True),
        ("anthropic/claude-4.5-sonnet-20250929", "anthropic/claude-sonnet-4.5", True),
        ("anthropic/claude-4-sonnet-20250929", "anthropic/claude-sonnet-4.5", False),
        ("anthropic/claude-4-5-opus", "anthropic/claude-opus-4-5", True),
        ("anthropic/claude-opus-5-4", "anthropic/claude-opus-4-5", False),
        ("anthropic/claude-5-opus-4", "anthropic/claude-opus-4-5", False),
        ("anthropic/opus-claude-4-5", "anthropic/claude-opus-4-5", False),
        ("other/x", "vendor/x", False),
        ("vendor/x-pro", "vendor/x", False),
        ("qwen3:32b", "qwen3:8b", False),
        ("models/gemini-x-pro", "gemini-x", False),
        ("claude-x-pro", "claude-x", False),
        ("claude-x-20250929-pro", "claude-x", False),
        ("claude-xl", "claude-x", False),
        ("claude-x-123", "claude-x", False),
        ("claude-x-12345", "claude-x", False),
        ("claude-x-202509", "claude-x", False),
        ("claude-x", "claude-x-20250929", False),
        ("claude-x-20240101", "claude-x-20250929", False),
        ("", "claude-x", False),
    ],
)
def test_answer_of_a_dated_version_is_one_of_the_model_asked_for(answered, requested, right):
    assert answers_for(answered, requested) is right
