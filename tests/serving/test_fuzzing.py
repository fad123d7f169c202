"""Requests that schemathesis makes from the description: right ones, wrong ones, and all get an answer as described.

TMT_FUZZ=1200 tests/serving/test_fuzzing.py makes so many requests for each address and kind instead of a few.
"""

from __future__ import annotations

import os
import warnings

import pytest
import requests
from hypothesis import HealthCheck, given, settings

from transformer_mt.serving.models import Models
from transformer_mt.serving.reference import ENDPOINTS, description

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

MANY = int(os.environ.get("TMT_FUZZ", "12"))


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("path", [end.path for end in ENDPOINTS if end.body is not None])
@pytest.mark.timeout(3_600)
def test_every_request_gets_an_answer_as_described(port: int, models: Models, path: str, mode: GenerationMode) -> None:
    (method,) = description()["paths"][path]
    operation = schemathesis.openapi.from_dict(description())[path][method]
    session, url = requests.Session(), f"http://127.0.0.1:{port}"

    @settings(max_examples=MANY, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        answer = case.call(base_url=url, session=session, timeout=30)
        case.validate_response(answer, checks=CHECKS)

    ask()
    assert requests.get(f"{url}/health", timeout=30).json() == {"status": "ok"}
    assert all(one.batcher.waiting == 0 for one in models.served)
