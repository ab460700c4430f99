"""Inference with 8-bit LSTMs: approximate, faster where LSTMs are large.

Weights are rounded to 8 bits with a scale per output, inputs to 7 bits with a scale per
row (7, because the AVX2 kernels behind this add pairs of products in 16 bits). Scales
come from the row itself, not from the batch. (But rounding can turn a difference in
the last bit of a word's vector, which float32 has between a word computed alone and
among others, into one of its own steps.) The character CNN stays in float32."""

import warnings
from typing import Any

import torch
from torch import Tensor

from .engine import Engine, FastLSTM
from .kernels import PlainKernel

LEVELS = 63  # of either sign


class Int8Kernel(PlainKernel):
    def __init__(
        self, weight: Tensor, bias: Tensor | None = None, **settings: Any
    ) -> None:
        super().__init__(weight, bias, **settings)
        rows = weight.detach().t().contiguous()  # (n_out, n_in)
        scales = rows.abs().amax(1).clamp(min=1e-12) / 127
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch plans to move these functions
            quantized = torch.quantize_per_channel(
                rows, scales.double(), torch.zeros(len(rows)).long(), 0, torch.qint8
            )
            self.packed = torch.ops.quantized.linear_prepack(quantized, None)

    def product(self, x: Tensor) -> Tensor:
        scale = x.abs().amax(1, keepdim=True).clamp_(min=1e-12)  # (n, 1)
        return torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / scale, 1.0 / LEVELS, LEVELS + 1, self.packed
        ).mul_(scale)


class Int8LSTM(FastLSTM):
    make_kernel = staticmethod(Int8Kernel)

    def run_single(self, x: Tensor, out: Tensor, h: Tensor, c: Tensor) -> None:
        for row, new in zip(x.split(1), out.split(1)):
            gates = self.gates(torch.cat([row, h[None]], 1))
            new.copy_(self.project(self.cell(gates, c[None])))
            h.copy_(new[0])


class Int8Engine(Engine):
    lstm_type = Int8LSTM
    can_pair = False
