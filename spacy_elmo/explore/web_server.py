"""Run the server of the page, on this machine only."""

import errno
import socket
import sys

from starlette.types import ASGIApp

HOST = "127.0.0.1"


def open_port(port: int) -> socket.socket:
    """Reserve a port of this machine. Raise ValueError if it cannot be had.

    port (int): Its number; 0 for any that is free.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":  # on Windows, two programs could share a port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = "is used by another program"
        if error.errno != errno.EADDRINUSE:
            reason = f"cannot be used ({error.strerror})"
        raise ValueError(
            f"port {port} {reason}; choose another one with --port, or 0 for any that "
            "is free"
        ) from None
    return listener


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serve an app until Ctrl-C is pressed. Then uvicorn closes all connections and
    raises KeyboardInterrupt."""
    import uvicorn

    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[listener])
