"""Refuse the network in processes that tests start."""

# Python imports this module when it starts, in the processes that a test starts too.
REFUSE = """
import socket, sys
def refuse(event, args):
    asks = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
    new = event == "socket.__new__" and args[1] in (socket.AF_INET, socket.AF_INET6)
    if new or event in asks:
        raise PermissionError("the network was used: " + event)
sys.addaudithook(refuse)
"""
