"""The retrain loop of a project: data that arrives, generations, a gate, and what is deployed.

`read_project` reads `project.toml`, `Retrain` carries out one retrain, `FolderRegistry` keeps the
generations (`MlflowRegistry` in MLflow), `results` lists all retrains so far.
"""

from dynsnap.project._comparable import find_deployed
from dynsnap.project._history import PAGE as HISTORY
from dynsnap.project._history import history_findings, write_history
from dynsnap.project._mlflow_registry import MlflowRegistry
from dynsnap.project._records import Measured, Plan, Result, advice, results
from dynsnap.project._registry import Deployed, FolderRegistry, Generation, Move, Registry, Way
from dynsnap.project._retrain import STEPS, Outlook, Retrain, alone, open_registry
from dynsnap.project._rows import parse_until
from dynsnap.project._settings import FILE, REGISTRY, RETRAINS, Project, read_project
from dynsnap.project._template import write_template
from dynsnap.project._weekly import ArrivedWeek, flights_project

__all__ = [
    "FILE",
    "HISTORY",
    "REGISTRY",
    "RETRAINS",
    "STEPS",
    "ArrivedWeek",
    "Deployed",
    "FolderRegistry",
    "Generation",
    "Measured",
    "MlflowRegistry",
    "Move",
    "Outlook",
    "Plan",
    "Project",
    "Registry",
    "Result",
    "Retrain",
    "Way",
    "advice",
    "alone",
    "find_deployed",
    "flights_project",
    "history_findings",
    "open_registry",
    "parse_until",
    "read_project",
    "results",
    "write_history",
    "write_template",
]
