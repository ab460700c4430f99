"""Serve the page and the answers to its questions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from . import answers
from .explorer import Explorer
from .page_requests import (
    MAX_BYTES,
    BadRequest,
    HeatMapRequest,
    NeighborsRequest,
    SentenceRequest,
    TextRequest,
    WordRequest,
    parse_request,
    refuse_size,
)
from .web_guard import Guard

FOLDER = Path(__file__).parent / "page"
SHARED = Path(__file__).parents[1] / "report" / "templates"
STYLE = "text/css; charset=utf-8"
JAVASCRIPT = "text/javascript; charset=utf-8"
# All files that are served. They are read when the app is made, so that no request can
# name another one.
FILES = {
    "/": (FOLDER / "index.html", "text/html; charset=utf-8"),
    "/colors.css": (SHARED / "colors.css", STYLE),
    "/base.css": (SHARED / "base.css", STYLE),
    "/style.css": (FOLDER / "style.css", STYLE),
    "/icon.svg": (FOLDER / "icon.svg", "image/svg+xml"),
    **{
        f"/{name}.js": (FOLDER / f"{name}.js", JAVASCRIPT)
        for name in (
            "controls",
            "dom",
            "main",
            "panels",
            "server",
            "texts",
            "words",
        )
    },
}
QUESTIONS: dict[str, tuple[type[TextRequest], Callable[..., dict[str, Any]]]] = {
    "/api/text": (TextRequest, answers.answer_text),
    "/api/neighbors": (NeighborsRequest, answers.answer_neighbors),
    "/api/predictions": (WordRequest, answers.answer_predictions),
    "/api/surprisal": (SentenceRequest, answers.answer_surprisal),
    "/api/heat-map": (HeatMapRequest, answers.answer_heat_map),
}


def make_app(explorer: Explorer) -> ASGIApp:
    """Make the app that serves the page."""
    routes = [_serve_file(path, *file) for path, file in FILES.items()]
    routes += [_serve_answer(explorer, path, *each) for path, each in QUESTIONS.items()]

    def describe(request: Request) -> Response:
        return JSONResponse(answers.describe(explorer))

    routes.append(Route("/api/info", describe))
    handlers: Any = {
        BadRequest: _refuse,
        HTTPException: _refuse_address,
        Exception: _admit_failure,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app)


def _serve_file(path: str, file: Path, media_type: str) -> Route:
    content = file.read_bytes()

    def serve(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return Route(path, serve)


def _serve_answer(
    explorer: Explorer,
    path: str,
    kind: type[TextRequest],
    answer: Callable[..., dict[str, Any]],
) -> Route:
    async def serve(request: Request) -> Response:
        try:
            body = await _read_body(request)
        except ClientDisconnect:
            return Response()  # nobody is there to read it
        data = parse_request(kind, body)
        answered = await run_in_threadpool(answer, explorer, data)
        after = None
        if kind is TextRequest:
            after = BackgroundTask(answers.prepare_answers, explorer, data)
        return JSONResponse(answered, background=after)

    return Route(path, serve, methods=["POST"])


async def _read_body(request: Request) -> bytes:
    """Read the body of a request, but no more than MAX_BYTES of it."""
    if request.headers.get("content-type", "").split(";")[0] != "application/json":
        raise BadRequest(
            "found a request of another type; expected application/json", status=415
        )
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            refuse_size()
    return bytes(body)


def _refuse(request: Request, error: BadRequest) -> Response:
    return JSONResponse(error.to_dict(), error.status)


def _refuse_address(request: Request, error: HTTPException) -> Response:
    sentence = f"found a request for something that is not here ({error.detail})"
    refusal = BadRequest(sentence, status=error.status_code)
    return JSONResponse(refusal.to_dict(), refusal.status, headers=error.headers)


def _admit_failure(request: Request, error: Exception) -> Response:
    sentence = "this failed; the reason was printed by the server"
    return JSONResponse(BadRequest(sentence, "failed").to_dict(), 500)
