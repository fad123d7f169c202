"""From a batch to its loss sums in one forward pass, compiled if wanted: the module that runs in parallel."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transformer_mt.data.packing import Layout
from transformer_mt.errors import TmtError, first_line
from transformer_mt.kernels.build import compile_layers
from transformer_mt.kernels.loss import LossSums, linear_cross_entropy
from transformer_mt.kernels.packing import AS_WRITTEN, Spans, StreamLayers, packed_hidden
from transformer_mt.kernels.r_drop import consistent_cross_entropy
from transformer_mt.model.transformer import Transformer


class TrainingStep(nn.Module):
    """Model and loss in one module.

    r_drop:   weight of the divergence between two passes; 0 means a single pass
    compiled: whether to compile the layers of the model, and on a GPU the loss
    """

    def __init__(self, model: Transformer, smoothing: float, r_drop: float = 0.0, compiled: bool = False) -> None:
        super().__init__()
        self.model = model
        self.smoothing, self.r_drop, self.compiled = smoothing, r_drop, compiled
        if compiled:
            compile_layers(model)
        self.stream_layers = StreamLayers.compiled() if compiled else AS_WRITTEN

    def forward(
        self,
        source_BS: Tensor,
        target_in_BT: Tensor,
        target_out_BT: Tensor,
        real_N: Tensor,
        layout: Layout | None = None,
    ) -> LossSums:
        """Loss sums over the N real target tokens. Padding is removed before the generator, to save time.

        Streams have little padding. On a GPU they keep it, because shapes that never change fit a CUDA graph.
        """
        generator = self.model.generator
        if self.has_static_shapes(layout, source_BS.device):
            counts_T = target_out_BT.flatten() != self.model.padding
            hidden_TD = self._hidden(source_BS, target_in_BT, layout).flatten(0, 1)
            hidden_TD = hidden_TD.masked_fill(~counts_T[:, None], 0.0)
            arguments = hidden_TD, generator.weight, generator.bias, target_out_BT.flatten(), self.smoothing
            return linear_cross_entropy(*arguments, self.compiled, counts_T)
        target_N = target_out_BT.flatten().index_select(0, real_N)
        if not self.r_drop:
            hidden_ND = _rows(self._hidden(source_BS, target_in_BT, layout), real_N)
            return linear_cross_entropy(
                hidden_ND, generator.weight, generator.bias, target_N, self.smoothing, self.compiled
            )
        # R-Drop: each sentence is twice in the batch, so that the two passes have different dropout
        hidden = self._hidden(torch.cat([source_BS, source_BS]), torch.cat([target_in_BT, target_in_BT]), layout)
        one_ND, other_ND = (_rows(half, real_N) for half in hidden.chunk(2))
        return consistent_cross_entropy(
            one_ND, other_ND, generator.weight, generator.bias, target_N, self.smoothing, self.r_drop
        )

    def has_static_shapes(self, layout: Layout | None, device: torch.device) -> bool:
        """Whether all batches have the same shapes. Only the halves of a split batch differ."""
        return layout is not None and device.type != "cpu" and not self.r_drop

    def _hidden(self, source_BS: Tensor, target_in_BT: Tensor, layout: Layout | None) -> Tensor:
        """Hidden states [B, T, D] of rows, or of streams."""
        if layout is None:
            rows: Tensor = self.model(source_BS, target_in_BT)
            return rows
        source = Spans(layout.source_positions_S, layout.source_starts_X, layout.longest)
        target = Spans(layout.target_positions_T, layout.target_starts_X, layout.longest)
        return packed_hidden(self.model, source_BS, target_in_BT, source, target, layers=self.stream_layers)


def _rows(hidden_BTD: Tensor, real_N: Tensor) -> Tensor:
    """The hidden states [N, D] of real positions."""
    return hidden_BTD.flatten(0, 1).index_select(0, real_N)  # the gradient of [real_N] would sort the indices


def failed_compilation(error: RuntimeError, compiled: bool) -> TmtError | None:
    """The error for the user if torch.compile raised this one; None if something else did.

    compiled: whether layers are compiled; FlexAttention, which some streams need, always is
    """
    if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
        return None
    if not compiled:
        return TmtError(
            f"the attention of streams cannot be compiled: {first_line(error)}",
            place="training.packing",
            remedy="Set training.packing: false, or install what is missing: Triton, a C compiler, Python's headers.",
        )
    return TmtError(
        f"torch.compile failed: {first_line(error)}",
        place="runtime.compile",
        remedy="Set runtime.compile: false. Compiling needs Triton on a GPU, and a C++ compiler and Python's headers.",
    )
