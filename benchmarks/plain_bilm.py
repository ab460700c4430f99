"""The baseline of pretraining.py: a simple biLM in PyTorch, with a character CNN over
every token, torch's LSTMs, cross entropy and autograd."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

BEGIN_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 256, 258, 259, 260
N_CHARACTERS = 261

States = list[list[tuple[Tensor, Tensor]]]  # states[direction][layer] is (h, c)


class CharacterCNN(nn.Module):
    """Maps character ids (n, max_characters) to vectors (n, projection)."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        characters = options["char_cnn"]
        dim, filters = characters["embedding"]["dim"], characters["filters"]
        n_filters = sum(n for _, n in filters)
        self.embedding = nn.Embedding(N_CHARACTERS, dim)
        self.convolutions = nn.ModuleList(nn.Conv1d(dim, n, w) for w, n in filters)
        self.highways = nn.ModuleList(
            nn.Linear(n_filters, 2 * n_filters) for _ in range(characters["n_highway"])
        )
        self.projection = nn.Linear(n_filters, options["lstm"]["projection_dim"])
        for highway in self.highways:
            nn.init.constant_(highway.bias[n_filters:], -2.0)

    def forward(self, characters: Tensor) -> Tensor:
        x = self.embedding(characters).transpose(1, 2)  # (n, dim, max_characters)
        parts = [conv(x).max(dim=2).values for conv in self.convolutions]
        x = F.relu(torch.cat(parts, dim=1))  # (n, n_filters)
        for highway in self.highways:
            new, gate = highway(x).chunk(2, dim=1)
            gate = torch.sigmoid(gate)
            x = gate * F.relu(new) + (1 - gate) * x
        return self.projection(x)


class PlainBiLM(nn.Module):
    """A character CNN, one stack of LSTMs per direction (without clips, which nn.LSTM
    does not have) and a softmax.

    options (dict): One of the SIZES in random_models.py.
    n_words (int): The number of words in the softmax.
    n_samples (int): Words to sample per step and direction; 0 for the full softmax.
    """

    def __init__(
        self, options: dict[str, Any], *, n_words: int, n_samples: int, dropout: float
    ) -> None:
        super().__init__()
        lstm = options["lstm"]
        width = lstm["projection_dim"]
        self.encoder = CharacterCNN(options)
        self.directions = nn.ModuleList(
            nn.ModuleList(
                nn.LSTM(width, lstm["dim"], proj_size=width)
                for _ in range(lstm["n_layers"])
            )
            for _ in range(2)
        )
        self.dropout = nn.Dropout(dropout)
        self.softmax = nn.Linear(width, n_words)
        nn.init.normal_(self.softmax.weight, 0.0, math.sqrt(1 / width))
        nn.init.zeros_(self.softmax.bias)
        self.n_samples = n_samples

    def forward(
        self, characters: Tensor, targets: Tensor, states: States | None
    ) -> tuple[Tensor, States]:
        """Compute the loss of a window.

        characters (Tensor): The character ids of each direction in its reading order,
            (2, n_steps, n_rows, max_characters). If the first dimension is 1, both
            directions read the same ids, the backward one from the end.
        targets (Tensor): The numbers in the softmax of the words that each direction
            should predict, (2, n_steps, n_rows).
        states (States | None): The states after the last window; None for zeros.
        RETURNS (tuple[Tensor, States]): The mean loss of each direction (2,), and the
            states for the next window.
        """
        x = self.encoder(characters.flatten(0, 2)).view(*characters.shape[:3], -1)
        losses, new_states = [], []
        for d, layers in enumerate(self.directions):
            y = x[d] if d < len(x) else x[0].flip(0)  # (n_steps, n_rows, width)
            last = []
            for j, layer in enumerate(layers):
                y = self.dropout(y)
                out, (h, c) = layer(y, None if states is None else states[d][j])
                y = y + out if j else out
                last.append((h.detach(), c.detach()))
            hidden = self.dropout(y).flatten(0, 1)
            losses.append(self.loss(hidden, targets[d].flatten()))
            new_states.append(last)
        return torch.stack(losses), new_states

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Compute the mean loss.

        hidden (Tensor): The outputs of the LSTMs, (n, width).
        targets (Tensor): The words to predict, (n,).
        """
        if not self.n_samples:
            return F.cross_entropy(self.softmax(hidden), targets)
        weight, bias = self.softmax.weight, self.softmax.bias
        sample, n_tries = self.draw()
        own = (hidden * weight[targets]).sum(1) + bias[targets]
        own = own - self.log_expected(targets, n_tries)  # (n,)
        others = F.linear(hidden, weight[sample], bias[sample])
        others = others - self.log_expected(sample, n_tries)  # (n, n_samples)
        others = others.masked_fill(sample == targets[:, None], -math.inf)
        logits = torch.cat([own[:, None], others], dim=1)
        return F.cross_entropy(logits, torch.zeros_like(targets))

    def draw(self) -> tuple[Tensor, int]:
        """Draw frequent words more often: the rank of a word is log-uniform, and words
        are sorted by falling frequency.

        RETURNS (tuple[Tensor, int]): Distinct words, (n_samples,), and the number of
            draws.
        """
        found: dict[int, None] = {}
        n_tries = 0
        while len(found) < self.n_samples:
            size = math.log(self.softmax.out_features + 1)
            ranks = np.exp(np.random.rand(self.n_samples) * size).astype(np.int64)
            for rank in ranks.clip(1, self.softmax.out_features).tolist():
                found[rank - 1] = None
                n_tries += 1
                if len(found) == self.n_samples:
                    break
        return torch.tensor(list(found)), n_tries

    def log_expected(self, words: Tensor, n_tries: int) -> Tensor:
        """Compute the log of the probability that each word is among n_tries draws.

        words (Tensor): The words, (n,).
        RETURNS (Tensor): The logs, (n,).
        """
        p = torch.log1p(1 / (words + 1)) / math.log(self.softmax.out_features + 1)
        return torch.log(-torch.expm1(n_tries * torch.log1p(-p)))


class PlainTraining:
    """The training loop of a PlainBiLM.

    characters (np.ndarray): The character ids of the boundary between sentences, then
        of all distinct words, (1 + n, max_characters).
    outputs (np.ndarray): Their numbers in the softmax, (1 + n,).
    boundaries (tuple[int, int]): The numbers of the end and of the beginning of a
        sentence in the softmax.
    """

    def __init__(
        self,
        model: PlainBiLM,
        characters: np.ndarray,
        outputs: np.ndarray,
        boundaries: tuple[int, int],
        *,
        learn_rate: float,
        initial_accumulator: float,
        clip_norm: float,
    ) -> None:
        self.model = model
        self.characters = torch.from_numpy(characters)
        self.outputs = outputs
        self.boundaries = boundaries
        self.clip_norm = clip_norm
        self.optimizer = torch.optim.Adagrad(
            model.parameters(),
            lr=learn_rate,
            initial_accumulator_value=initial_accumulator,
        )
        self.states: States | None = None

    def step(self, inputs: np.ndarray, targets: np.ndarray) -> float:
        """Make one update.

        inputs (np.ndarray): The words to read, as rows of `characters`, (2, n_steps,
            n_rows); or (1, n_steps, n_rows) as in PlainBiLM.forward.
        targets (np.ndarray): The words to predict, numbered in the same way, (2,
            n_steps, n_rows).
        RETURNS (float): The mean loss of both directions.
        """
        words = self.outputs[targets]
        for d, boundary in enumerate(self.boundaries):
            words[d][targets[d] == 0] = boundary
        losses, self.states = self.model(
            self.characters[torch.from_numpy(inputs).long()].long(),
            torch.from_numpy(words),
            self.states,
        )
        loss = losses.mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimizer.step()
        return loss.item()


def character_ids(words: list[str], max_characters: int) -> np.ndarray:
    """Return the character ids of the boundary between sentences, then of the words,
    (1 + n, max_characters)."""
    ids = np.full((1 + len(words), max_characters), PADDING, dtype=np.int16)
    ids[:, 0] = BEGIN_WORD
    ids[0, 1:3] = BEGIN_SENTENCE, END_WORD
    for row, word in enumerate(words, 1):
        characters = list(word.encode("utf8", "ignore")[: max_characters - 2])
        ids[row, 1 : len(characters) + 2] = [*characters, END_WORD]
    return ids
