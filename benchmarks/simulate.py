"""The paper's CIFAR-100 study on paper: time and cost on 1, 8 and 64 GPUs.

    python benchmarks/simulate.py [--gpus 1 8 64] [--replicates 1 5] [--price 3.0] [--seeds 5]

The plan and the schedule are the real ones; GPUs and the clock are simulated from what
was measured on one H200 (see `simulated_cluster.Gpu`). Each line is the mean over some
seeds. "speed-up" is against one GPU without mishaps, "lost" the GPU time that came to nothing.
"""

import argparse
import dataclasses
import logging
import tempfile
from importlib import resources
from pathlib import Path
from statistics import mean

from simulated_cluster import Mishaps, simulate

from dynsnap.engine import Rules
from dynsnap.study import StudyPlan, read_study

IMAGES = (37_500, 46_875, 47_375)
MISHAPS = {
    "none": Mishaps(),
    "1 % of tasks take three times as long": Mishaps(straggling=0.01),
    "1 % of nodes die in an hour": Mishaps(failing=0.01),
    "both": Mishaps(straggling=0.01, failing=0.01),
}
TASKS = {"large": True, "small": False}


def paper(replicates: int) -> StudyPlan:
    """The study as it is shipped, or with every method so many times; every round is trained."""
    text = (resources.files("dynsnap") / "studies/cifar100-full.toml").read_text()
    if replicates > 1:
        own = text.index("[methods.singlebase]")
        text = text[:own].replace("[study]", f"[study]\nreplicates = {replicates}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "study.toml")
        file.write_text(text)
        return dataclasses.replace(read_study(file), prefixes=False, ahead=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--replicates", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--price", type=float, help="of a GPU for an hour; adds a column")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # every retry is told
    price = " cost |" if options.price else ""
    for replicates in options.replicates:
        plan = paper(replicates)
        print(f"\n{replicates} replicate{'s' * (replicates > 1)} of each method\n")
        print(
            "| GPUs | tasks | mishaps | rounds | hours | speed-up | busy | idle | GPU-hours "
            f"| lost |{price}\n|---|---|---|---|---|---|---|---|---|---|{'---|' if price else ''}"
        )
        alone = None
        for gpus in options.gpus:
            for tasks, side_by_side in TASKS.items():
                for name, mishaps in MISHAPS.items():
                    if name != "none" and not side_by_side:
                        continue
                    found = [
                        simulate(
                            plan,
                            images=IMAGES,
                            gpus=gpus,
                            mishaps=dataclasses.replace(mishaps, node=min(8, gpus)),
                            rules=Rules(side_by_side=side_by_side),
                            seed=seed,
                        )
                        for seed in range(options.seeds)
                    ]
                    hours = mean(one.wall for one in found) / 3600
                    alone = alone or hours
                    cells = [
                        f"{gpus}",
                        tasks,
                        name,
                        f"{mean(one.rounds for one in found):.0f}",
                        f"{hours:.2f}",
                        f"{alone / hours:.1f}",
                        f"{mean(one.busy_share for one in found):.0%}",
                        f"{mean(one.idle / (one.gpus * one.wall) for one in found):.0%}",
                        f"{mean(one.gpu_hours for one in found):.1f}",
                        f"{mean(one.lost for one in found) / 3600:.1f} h",
                    ]
                    if options.price:
                        cost = mean(one.gpu_hours for one in found) * options.price
                        cells.append(f"{cost:.0f}")
                    print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
