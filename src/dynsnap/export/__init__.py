"""Ensembles for servers: one ONNX graph with all members, or members as plain torch modules.

Needs `dynsnap[onnx]`, and `dynsnap[torch]` or `dynsnap[boost]` for the members.
"""

from dynsnap.export._check import Checked
from dynsnap.export._ensemble import ExportableEnsemble, exportable
from dynsnap.export._onnx import OnnxModel, members_as_modules, save_onnx, stacked_module, to_onnx

__all__ = [
    "Checked",
    "ExportableEnsemble",
    "OnnxModel",
    "exportable",
    "members_as_modules",
    "save_onnx",
    "stacked_module",
    "to_onnx",
]
