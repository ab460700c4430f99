"""Inference with 8-bit LSTMs on a CPU: approximate, and faster where LSTMs are large.

Weights are rounded to 8 bits with one scale per output, inputs to 7 bits with one scale
per row. 8 bits would be too many for inputs: torch's AVX2 kernels add pairs of products
in 16 bits. The character CNN stays in float32.

The vectors of a sentence can depend slightly on other sentences: the last bit of a
word's float32 vector may differ with the words that are encoded together with it, and
rounding can turn that into a difference of one 7-bit level."""

import warnings
from typing import Any

import torch
from torch import Tensor

from .cpu import CPUEngine, FastLSTM
from .kernels import PlainKernel

LEVELS = 63  # inputs are rounded to whole numbers from -63 to 63


class Int8Kernel(PlainKernel):
    """A linear map with 8-bit weights."""

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

    def matmul(self, x: Tensor) -> Tensor:
        scale = x.abs().amax(1, keepdim=True).clamp_(min=1e-12)  # (n, 1)
        return torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / scale, 1.0 / LEVELS, LEVELS + 1, self.packed
        ).mul_(scale)


class Int8LSTM(FastLSTM):
    make_kernel = staticmethod(Int8Kernel)

    def run_one_row(self, x: Tensor, out: Tensor, h: Tensor, c: Tensor) -> None:
        for row, new in zip(x.split(1), out.split(1)):
            gates = self.gates(torch.cat([row, h[None]], 1))
            new.copy_(self.project(self.cell(gates, c[None])))
            h.copy_(new[0])


class Int8Engine(CPUEngine):
    lstm_type = Int8LSTM
    has_one_sentence_path = False
