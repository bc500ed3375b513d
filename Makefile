.PHONY: check test engine house wheel-check doors-check image-check soak mutation bench bench-engine bench-model worlds worlds-engine scale parity docs lock data

check:  ## everything that must hold before a commit lands
	uv run ruff format --check
	uv run ruff check
	uv run mypy
	uv run lint-imports
	uv run python -m tools.engine_image --check
	uv run pytest -n auto --dist loadfile
	uv run python -m tools.house

test:  ## the tests alone
	uv run pytest -n auto --dist loadfile

engine:  ## write the engine's image again, after an edit of what is compiled or of a pin; a minute
	uv run python -m tools.engine_image

house:  ## how the house stands: lines, rooms, imports, functions
	uv run python -m tools.house

wheel-check:  ## install the wheel on two Pythons beside files whose names clash and run the main jobs; minutes
	uv run python -m tools.try_wheel 3.11 3.13

doors-check:  ## the guard's doors with freqtrade and the OpenAI Agents SDK, each in an environment of its own
	uv run python -m tools.try_doors

image-check:  ## run the steps of the Dockerfile in a fresh folder and start what they made; minutes, no Docker
	uv run python -m tools.image_steps

soak:  ## faults and load against their targets, most of an hour, into docs/reference/soak.md; never part of the tests
	uv run python -m tests.soak

mutation:  ## change the kernel in small ways and list what no test noticed; resumes, takes a while
	uv run python -m tools.mutation

bench:  ## timings, other engines included, into docs/reference/benchmarks.md; never part of the tests
	uv run python -m benchmarks

bench-engine:  ## print the timings of this engine alone
	uv run python -m benchmarks --engine

bench-model:  ## print how many second readings are in time with a model that takes 0.1, 1 and 3 s, and token counts
	uv run python -m benchmarks.model_deadlines

worlds:  ## the gate on every world of known truth, into docs/reference/benchmarks.md; hours, and it resumes
	uv run python -m benchmarks.gate_worlds

worlds-engine:  ## what reflection wins back of faults from slight to plain; an hour or two
	uv run python -m benchmarks.gate_worlds.engine

scale:  ## bars, symbols and minutes until it bends, with what 10,000 symbols would need; half an hour
	uv run python -m benchmarks.scale

parity:  ## run the other engines apart and record their trades for the tests
	uv run python -m benchmarks.parity
	uv run python -m benchmarks.statistics_parity

docs:  ## rewrite what the code says about itself: reference blocks, outputs of examples, the picture
	uv run python -m tools.docs_reference
	uv run python -m tools.docs_examples

lock:  ## raise every pin to the newest resolution and rewrite the hashed export
	uv run --no-project python tools/lock.py

data:  ## rebuild the embedded bars and their NOTICE from the source package
	uv run --group data python -m tools.build_sample_data
