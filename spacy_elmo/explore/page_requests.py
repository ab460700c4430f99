"""Parse the requests of the page, and refuse all others with one sentence."""

import json
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

MAX_BYTES = 2**17  # of a request: the longest text, even if every character is escaped
MAX_CHARACTERS = 10_000
MAX_RUN = 1_000  # characters without a space; a tokenizer's time grows as their square
MAX_SENTENCES = 200
MAX_WORDS = 2_000

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=0)]


class BadRequest(ValueError):
    """A request that cannot be answered.

    sentence (str): Says why.
    code (str): The same in one word, for the page, which says it in its own language.
    status (int): The status of the HTTP response.
    limit (int | None): The limit that was exceeded, if there is one.
    """

    def __init__(
        self,
        sentence: str,
        code: str = "invalid",
        *,
        status: int = 400,
        limit: int | None = None,
    ) -> None:
        super().__init__(sentence)
        self.code = code
        self.status = status
        self.limit = limit

    def to_dict(self) -> dict[str, Any]:
        return {"error": str(self), "code": self.code, "limit": self.limit}


class TextRequest(BaseModel):
    """Ask for the sentences and words of a text."""

    model_config = ConfigDict(strict=True, extra="forbid")
    text: str


class SentenceRequest(TextRequest):
    """Ask about one sentence of a text, by its number."""

    sentence: Number


class WordRequest(SentenceRequest):
    """Ask about one word of a sentence, by its number."""

    word: Number


class NeighborsRequest(WordRequest):
    """Ask for the contexts that are nearest to a word.

    weights (list[float]): The weight of each layer in the mix that is compared.
    place (str): Where to search: "typed" for the text itself, "corpus" for an index.
    """

    weights: list[Share]
    place: Literal["typed", "corpus"]


class HeatMapRequest(TextRequest):
    """Ask how similar each word of one sentence is to each word of another one."""

    first: Number
    second: Number
    weights: list[Share]


RequestT = TypeVar("RequestT", bound=TextRequest)


def parse_request(kind: type[RequestT], body: bytes) -> RequestT:
    """Parse the body of a request. Raise BadRequest if it is not of this kind."""
    if len(body) > MAX_BYTES:
        refuse_size()
    try:
        data = json.loads(body.decode("utf8"))
    except (ValueError, RecursionError):
        raise BadRequest("found a request that is not JSON; expected JSON") from None
    try:
        request = kind.model_validate(data)
    except ValidationError as error:
        raise BadRequest(_describe(error)) from None
    try:
        request.text.encode("utf8")
    except UnicodeEncodeError:
        raise BadRequest(
            "'text' has half of a surrogate pair; expected whole characters"
        ) from None
    if len(request.text) > MAX_CHARACTERS:
        raise BadRequest(
            f"found a text of {len(request.text):,} characters; expected at most "
            f"{MAX_CHARACTERS:,}",
            "too_long",
            status=413,
            limit=MAX_CHARACTERS,
        )
    return request


def refuse_size() -> NoReturn:
    """Raise BadRequest for a body with more than MAX_BYTES."""
    raise BadRequest(
        f"found a request of more than {MAX_BYTES:,} bytes; expected fewer",
        "too_long",
        status=413,
        limit=MAX_CHARACTERS,
    )


def _describe(error: ValidationError) -> str:
    """Describe the first error in one sentence."""
    first = error.errors(include_url=False, include_context=False, include_input=False)
    name = ".".join(map(str, first[0]["loc"])).encode("utf8", "replace").decode()
    # The name can be anything if the request has a key that it should not have.
    place = f"'{name[:40]}'" if name else "the request"
    return f"{place} is wrong: {first[0]['msg'][:1].lower()}{first[0]['msg'][1:]}"
