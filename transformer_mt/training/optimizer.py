"""From gradients to weights: clipping, the optimizer of the config, the moving average of the weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from transformer_mt.config.choices import chosen
from transformer_mt.config.training import TrainingConfig
from transformer_mt.errors import TmtError
from transformer_mt.runtime.device import Machine
from transformer_mt.training.average import MovingAverage
from transformer_mt.training.narrow_weights import NarrowCopy
from transformer_mt.training.optimizers.base import OptimizerKind

SCALER = "scaler/"


class Optimizer:
    """The optimizer of the config, with all of its state. narrow: a copy of the model that computes in bfloat16."""

    def __init__(
        self, model: nn.Module, config: TrainingConfig, machine: Machine, narrow: NarrowCopy | None = None
    ) -> None:
        self.model, self.clip_norm, self.narrow = model, config.clip_norm, narrow
        cls, options = chosen("optimizer", config.optimizer)
        kind: OptimizerKind = cls(config, options)
        if machine.needs_scaling and not kind.scales:
            raise TmtError(
                f"the optimizer {config.optimizer} does not support float16",
                place="runtime.precision",
                remedy="Set runtime.precision to bfloat16 or float32, or training.optimizer to adam.",
            )
        self.parts = kind.make(model)
        self.scaler = torch.amp.GradScaler(machine.device.type, enabled=machine.needs_scaling)
        self.average = MovingAverage(model, config.ema_decay) if config.ema_decay else None

    def update(self, step: int, rate: float) -> None:
        """Update the weights and clear the gradients. step: counts from 1; rate: the learning rate."""
        if self.narrow is not None:
            self.narrow.move_gradients()
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = rate
            if self.clip_norm is not None:
                self.scaler.unscale_(part)
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        for part in self.parts:
            self.scaler.step(part)
        self.scaler.update()
        self.model.zero_grad()
        if self.narrow is not None:
            self.narrow.round_weights()
        if self.average is not None:
            self.average.update(self.model, step)

    def tensors(self) -> dict[str, Tensor]:
        """Moments with names like `exp_avg/encoder...`, and the state of loss scaling."""
        tensors = {
            f"{kind}/{name}": value
            for name, parameter in self.model.named_parameters()
            for part in self.parts
            for kind, value in part.state.get(parameter, {}).items()
        }
        scaling = self.scaler.state_dict()  # empty without scaling
        return tensors | {f"{SCALER}{key}": torch.tensor(float(value)) for key, value in scaling.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load what `tensors` returned. Before the first step there are no moments."""
        parameters = dict(self.model.named_parameters())
        part_of = {one: part for part in self.parts for group in part.param_groups for one in group["params"]}
        for key, value in tensors.items():
            kind, _, name = key.partition("/")
            if (parameter := parameters.get(name)) is not None:
                # Moments are on the device of their weight. The step count is on the CPU; only CUDA's fused kernel
                # needs it on the GPU.
                stays = kind == "step" and not parameter.is_cuda
                # A copy: Windows cannot remove a checkpoint as long as a tensor is mapped to its file.
                device = value.device if stays else parameter.device
                part_of[parameter].state[parameter][kind] = value.to(device, copy=True)
        scaling = {key.removeprefix(SCALER): float(value) for key, value in tensors.items() if key.startswith(SCALER)}
        if scaling and self.scaler.is_enabled():
            whole = {key: int(scaling[key]) for key in ("growth_interval", "_growth_tracker")}
            self.scaler.load_state_dict({**scaling, **whole})
