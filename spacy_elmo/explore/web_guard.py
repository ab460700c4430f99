"""Refuse requests that do not come from the page itself, and never show a traceback.

The server listens on this machine only, but any page that is open in a browser here can
send requests to it. So the name in the request must be one of this machine (a foreign
name could be made to point here: DNS rebinding), and questions must come from our page.
"""

import re

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from wasabi import msg

from .page_requests import BadRequest

HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Guard:
    """Wraps an app: checks requests before it sees them, and adds headers to all
    responses."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        refusal = find_fault(scope["method"], Headers(scope=scope))
        if refusal is not None:
            data = BadRequest(refusal, "refused").to_dict()
            await JSONResponse(data, 403)(scope, receive, send_with_headers)
            return
        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as error:  # the app has already sent a response
            msg.warn(f"{scope['path']!r} failed: {type(error).__name__}: {error}")


def find_fault(method: str, headers: Headers) -> str | None:
    """Return why a request is refused, in one sentence; None if it is not."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not HOST.fullmatch(hosts[0].lower()):
        return "found a foreign name in 'Host'; expected 127.0.0.1 or localhost"
    if method in ("GET", "HEAD"):
        return None
    if headers.get("origin", f"http://{hosts[0]}") != f"http://{hosts[0]}":
        return "found a request of another page; expected one of this page"
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return "found a request of another site; expected one of this page"
    return None
