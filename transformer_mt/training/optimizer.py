"""From gradients to weights: clipping, Adam (section 5.3), and the moving average of what comes out."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from transformer_mt.config.training import TrainingConfig
from transformer_mt.runtime.device import Machine
from transformer_mt.training.average import MovingAverage

SCALER = "scaler/"


class Optimizer:
    """Adam or AdamW as the config asks for it, with all that has to be remembered between two steps."""

    def __init__(self, model: nn.Module, config: TrainingConfig, machine: Machine) -> None:
        self.model, self.clip_norm = model, config.clip_norm
        self.adam = make_optimizer(model, config)
        self.scaler = torch.amp.GradScaler(machine.device.type, enabled=machine.needs_scaling)
        self.average = MovingAverage(model, config.ema_decay) if config.ema_decay else None

    def update(self, step: int, rate: float) -> None:
        """Use up the gradients. step: counts from 1; rate: the learning rate."""
        for group in self.adam.param_groups:
            group["lr"] = rate
        if self.clip_norm is not None:
            self.scaler.unscale_(self.adam)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.scaler.step(self.adam)
        self.scaler.update()
        self.adam.zero_grad()
        if self.average is not None:
            self.average.update(self.model, step)

    def tensors(self) -> dict[str, Tensor]:
        """Moments as `exp_avg/encoder...`, and the state of the loss scaling."""
        tensors = {
            f"{kind}/{name}": value
            for name, parameter in self.model.named_parameters()
            for kind, value in self.adam.state.get(parameter, {}).items()
        }
        scaling = self.scaler.state_dict()  # empty where nothing is scaled
        return tensors | {f"{SCALER}{key}": torch.tensor(float(value)) for key, value in scaling.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Undo `tensors`. Before the first step there are no moments to load."""
        for name, parameter in self.model.named_parameters():
            kinds = [key.partition("/")[0] for key in tensors if key.partition("/")[2] == name]
            if kinds:
                self.adam.state[parameter] = {
                    kind: _placed(tensors[f"{kind}/{name}"], kind, parameter) for kind in kinds
                }
        scaling = {key.removeprefix(SCALER): float(value) for key, value in tensors.items() if key.startswith(SCALER)}
        if scaling and self.scaler.is_enabled():
            self.scaler.load_state_dict({**scaling, "_growth_tracker": int(scaling["_growth_tracker"])})


def _placed(value: Tensor, kind: str, parameter: nn.Parameter) -> Tensor:
    """Moments live with their weight; the count of steps too, but only on CUDA, where the fused kernel reads it."""
    return value if kind == "step" and not parameter.is_cuda else value.to(parameter.device)


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam or AdamW, fused into one kernel where the device has one. The schedule sets the learning rate."""
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    device = next(model.parameters()).device.type
    return kind(
        model.parameters(),
        lr=0.0,
        betas=config.betas,
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        fused=device in ("cpu", "cuda"),
    )
