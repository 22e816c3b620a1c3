"""The server of docs/serving.md under real concurrency, on loopback."""

import http.client
import json
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import dynsnap
from dynsnap import export
from dynsnap.errors import PlanError
from dynsnap.train import StackedModule, models
from tests.export.ensembles import learner, small_cnn

pytestmark = pytest.mark.slow  # it loads FastAPI and torch

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


@pytest.fixture(scope="module")
def served():
    """The port of a running server, the ensemble behind it, and inputs."""
    import uvicorn

    rows, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = LogisticRegression(max_iter=300)
    ensemble = dynsnap.DynSnapClassifier(model, method="extbagging", members=3, random_state=0)
    ensemble.fit(rows, names)
    code = re.search(r'```python title="server.py"\n(.*?)```', PAGE.read_text("utf-8"), re.S)
    found = {"__name__": "server"}
    exec(compile(code[1], str(PAGE), "exec"), found)
    app = found["create_app"](ensemble.predict_proba, ensemble.classes_, float)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()  # a request waits until the server is up
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1], ensemble, rows
    server.should_exit = True
    thread.join()
    listening.close()


def ask(port, inputs):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = json.dumps({"inputs": inputs})
    connection.request("POST", "/predict", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_eight_threads_get_the_answers_of_the_ensemble(served):
    port, ensemble, rows = served
    expected, labels = ensemble.predict_proba(rows), ensemble.predict(rows)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda row: ask(port, [row]), rows.tolist()))
    assert {status for status, _ in found} == {200}
    np.testing.assert_allclose([body["scores"][0] for _, body in found], expected, atol=1e-12)
    assert [body["label"][0] for _, body in found] == labels.tolist()


@pytest.mark.parametrize("inputs", [[[1.0, 2.0]], [["a", "b", "c", "d"]], [[None] * 4]])
def test_bad_input_is_the_callers_fault(served, inputs):
    status, body = ask(served[0], inputs)
    assert status == 422
    assert body["detail"]


@pytest.mark.parametrize("kind", ["pixels", "images"])
def test_a_stack_gives_the_scores_of_its_members(kind):
    import torch

    made = export.exportable(small_cnn(4, kind=kind), model=models.cnn)
    stack = StackedModule(export.members_as_modules(made))
    rows = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 1), np.uint8)
    rows = rows if kind == "pixels" else (rows / 255).astype(np.float32)
    for size in (1, 5):
        with torch.inference_mode():
            found = stack(torch.from_numpy(rows[:size])).numpy()
        np.testing.assert_allclose(found, made.score(rows[:size]), atol=1e-6)


def test_members_of_two_structures_are_not_stacked():
    from dynsnap.train import member_modules

    learners = [learner(models.mlp, (4,), classes=classes) for classes in (2, 3)]
    with pytest.raises(PlanError):
        StackedModule(member_modules(learners, model=models.mlp))
