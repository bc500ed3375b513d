import pytest

from agents.language_models.knowledge_cutoffs import answers_for


@pytest.mark.parametrize(
    ("answered", "asked", "right"),
    [
        ("claude-x", "claude-x", True),
        ("claude-x-20250929", "claude-x", True),
        ("claude-x@20250929", "claude-x", True),
        ("gpt-x-2025-09-29", "gpt-x", True),
        ("gpt-x-0613", "gpt-x", True),
        ("claude-x-20250929", "claude-x-latest", True),
        ("claude-x-latest", "claude-x-latest", True),
        ("vendor/x-20250929", "vendor/x", True),
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
def test_answer_of_a_dated_version_is_one_of_the_model_asked_for(answered, asked, right):
    assert answers_for(answered, asked) is right
