"""From gradients to weights: clipping, Adam (section 5.3) or Muon, and the moving average of what comes out."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from transformer_mt.config.training import TrainingConfig
from transformer_mt.errors import TmtError
from transformer_mt.runtime.device import Machine
from transformer_mt.training.average import MovingAverage
from transformer_mt.training.muon import Muon

SCALER = "scaler/"


class Optimizer:
    """Adam, AdamW or Muon as the config asks for it, with all that has to be remembered between two steps."""

    def __init__(self, model: nn.Module, config: TrainingConfig, machine: Machine) -> None:
        self.model, self.clip_norm = model, config.clip_norm
        self.parts = make_optimizers(model, config)
        if machine.needs_scaling and len(self.parts) > 1:  # a gradient that overflows must stop both parts
            raise TmtError(
                "Muon does not train in float16", place="runtime.precision", remedy="Use bfloat16, float32, or adam."
            )
        self.scaler = torch.amp.GradScaler(machine.device.type, enabled=machine.needs_scaling)
        self.average = MovingAverage(model, config.ema_decay) if config.ema_decay else None

    def update(self, step: int, rate: float) -> None:
        """Use up the gradients. step: counts from 1; rate: the learning rate."""
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
        if self.average is not None:
            self.average.update(self.model, step)

    def tensors(self) -> dict[str, Tensor]:
        """Moments as `exp_avg/encoder...`, and the state of the loss scaling."""
        tensors = {
            f"{kind}/{name}": value
            for name, parameter in self.model.named_parameters()
            for part in self.parts
            for kind, value in part.state.get(parameter, {}).items()
        }
        scaling = self.scaler.state_dict()  # empty where nothing is scaled
        return tensors | {f"{SCALER}{key}": torch.tensor(float(value)) for key, value in scaling.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Undo `tensors`. Before the first step there are no moments to load."""
        part_of = {one: part for part in self.parts for group in part.param_groups for one in group["params"]}
        for name, parameter in self.model.named_parameters():
            kinds = [key.partition("/")[0] for key in tensors if key.partition("/")[2] == name]
            if kinds:
                part_of[parameter].state[parameter] = {
                    kind: _placed(tensors[f"{kind}/{name}"], kind, parameter) for kind in kinds
                }
        scaling = {key.removeprefix(SCALER): float(value) for key, value in tensors.items() if key.startswith(SCALER)}
        if scaling and self.scaler.is_enabled():
            whole = {key: int(scaling[key]) for key in ("growth_interval", "_growth_tracker")}
            self.scaler.load_state_dict({**scaling, **whole})


def _placed(value: Tensor, kind: str, parameter: nn.Parameter) -> Tensor:
    """Moments live with their weight; the count of steps too, but only on CUDA, where the fused kernel reads it."""
    return value if kind == "step" and not parameter.is_cuda else value.to(parameter.device)


def make_optimizers(model: nn.Module, config: TrainingConfig) -> list[torch.optim.Optimizer]:
    """Adam or AdamW for all weights; or Muon for the matrices of the layers and AdamW for the rest.

    Muon's updates are as large as Adam's, so one learning rate, which the schedule sets, serves both. Embeddings,
    output layer, biases and gains are AdamW's, as Muon's authors found best.
    """
    if config.optimizer != "muon":
        return [_adam(list(model.parameters()), config)]
    matrices: dict[nn.Parameter, int] = {}
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if ".layers." in name and parameter.ndim == 2:
            matrices[parameter] = 3 if name.endswith("query_key_value.weight") else 1
        else:
            others.append(parameter)
    return [Muon(matrices, lr=0.0, weight_decay=config.weight_decay), _adam(others, config)]


def _adam(parameters: list[nn.Parameter], config: TrainingConfig) -> torch.optim.Optimizer:
    """Fused into one kernel where the device has one."""
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
    return kind(
        parameters,
        lr=0.0,
        betas=config.betas,
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        fused=parameters[0].device.type in ("cpu", "cuda"),
    )
