"""Optimisers by factory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from dynsnap.errors import PlanError

OptimizerFactory: TypeAlias = Callable[[Any, float], torch.optim.Optimizer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adam:
    """Adam, as an optimiser factory.

    Attributes:
        betas: Decay of the two moments.
        eps: Added to the denominator. The paper's framework has 1e-7.
        kernel_penalty: Weight λ of a penalty λ·Σw² on convolution kernels, and on nothing else;
            1e-4 in the paper.
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    kernel_penalty: float = 0.0

    def __post_init__(self) -> None:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise PlanError(f"`betas` must be at least 0 and below 1, got {self.betas}.")
        if not self.eps > 0:
            raise PlanError(f"`eps` must be positive, got {self.eps}.")
        if not self.kernel_penalty >= 0:
            raise PlanError(f"`kernel_penalty` must not be negative, got {self.kernel_penalty}.")

    def groups(self, module: nn.Module) -> list[dict[str, Any]]:
        """The parameters, convolution kernels apart where they are penalised."""
        if not self.kernel_penalty:
            return [{"params": list(module.parameters())}]
        convolutions = nn.Conv1d | nn.Conv2d | nn.Conv3d
        kernels = [part.weight for part in module.modules() if isinstance(part, convolutions)]
        marked = {id(kernel) for kernel in kernels}
        rest = [value for value in module.parameters() if id(value) not in marked]
        # The gradient of λ·w² is 2·λ·w, which is how torch understands a decay.
        decayed = {"params": kernels, "weight_decay": 2 * self.kernel_penalty}
        return [group for group in (decayed, {"params": rest}) if group["params"]]

    def __call__(self, parameters: Any, learning_rate: float) -> torch.optim.Optimizer:
        adam = torch.optim.Adam(parameters, lr=learning_rate, betas=self.betas, eps=self.eps)
        kinds = {value.device.type for group in adam.param_groups for value in group["params"]}
        for group in adam.param_groups:
            group["fused"] = kinds <= {"cpu", "cuda"}
        return adam


def make_optimizer(
    factory: OptimizerFactory, module: nn.Module, learning_rate: float
) -> torch.optim.Optimizer:
    """An optimiser for a module: from `Adam`, or from anything called as torch's own are."""
    groups = factory.groups(module) if isinstance(factory, Adam) else list(module.parameters())
    optimizer = factory(groups, learning_rate)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise PlanError(
            "`optimizer` must build a torch optimiser when called with parameters and a learning "
            f"rate, as torch.optim.SGD does, but gave {type(optimizer).__name__}."
        )
    return optimizer
