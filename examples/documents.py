"""Three devices of which two never meet: what one publishes, the second carries to the third.

Each device is a real node with its own store, and they find each other by broadcast on this machine's loopback. So
that it takes seconds, they announce five times a second instead of every fifteen seconds.
"""

import asyncio
import socket
import tempfile
from pathlib import Path

from roamcast.live.client import Client
from roamcast.live.node import Node
from roamcast.live.settings import NodeSettings

REPORT = b"The bridge at kilometre 7 is gone. " * 1000


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def documents(client: Client) -> int:
    """How many documents a node has in its cache, as `roamcast status` shows it."""
    return int((await client.status())["tables"]["documents"])


async def main(folder: Path) -> None:
    port = free_port()

    def device(number: int) -> Node:
        return Node(
            NodeSettings(
                node=number,
                protocol="opportunistic",
                changes=("interval=0.2",),
                insecure=True,
                address="127.255.255.255",
                port=port,
                store=folder / f"{number}.store",
                sync="normal",
                control=f"unix:{folder / f'{number}.socket'}",
            )
        )

    async with device(2) as carrier, Client(str(carrier.control)) as carriers_client:
        async with device(1) as scout, Client(str(scout.control)) as client:
            await client.publish({"about": "bridge", "km": 7}, type="report", payload=REPORT, lifetime=3600)
            print(f"node 1 has published a report of {len(REPORT)} bytes")
            async with carriers_client.subscribe('type = "report"') as reports:
                await anext(reports)
        print(f"node 2 carries {await documents(carriers_client)} document; node 1 is gone")
        async with (
            device(3) as headquarters,
            Client(str(headquarters.control)) as client,
            client.subscribe('about = "bridge" and km < 10') as reports,
        ):
            report = await anext(reports)
            print(f"node 3 got all {len(report.payload)} bytes of it, and has never met node 1")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))
