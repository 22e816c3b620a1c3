"""What the presets of `DynSnapClassifier` cost, and how accurate they are: docs/estimator.md.

Seconds are those of one core (CPU time), so a busy machine does not change them much. Each model is
fitted on 1,437 digits of 8 x 8 pixels, and tested on 360.

    python benchmarks/presets.py
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before a library starts its threads

import time
from typing import Any

import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.train.models import mlp

MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "`mlp` (torch)": (mlp, {"device": "cpu"}),
    "`XGBClassifier(n_jobs=1)`": (XGBClassifier(n_jobs=1), {}),
    "`HistGradientBoostingClassifier()`": (HistGradientBoostingClassifier(), {}),
}
PRESETS = ("quick", "paper")


def main() -> None:
    torch.set_num_threads(1)
    digits, names = load_digits(return_X_y=True)
    parts = train_test_split(digits, names, test_size=0.2, random_state=0, stratify=names)
    inputs, test, labels, truth = parts
    print("| model | `preset` | rounds | epochs | CPU seconds | accuracy |")
    print("|---|---|---|---|---|---|")
    for name, (model, settings) in MODELS.items():
        for preset in PRESETS:
            made = DynSnapClassifier(model, preset=preset, random_state=0, **settings)
            began = time.process_time()
            made.fit(inputs, labels)
            seconds = time.process_time() - began
            cells = (name, f'`"{preset}"`', made.rounds_, len(made.history_), f"{seconds:.1f}")
            print(f"| {' | '.join(map(str, cells))} | {made.score(test, truth):.3f} |", flush=True)


if __name__ == "__main__":
    main()
