"""What bounds a server: where it listens, who may ask, how much, and for how long."""

from ipaddress import ip_address

from xpredflow.errors import InputError
from xpredflow.settings import Field, settings


@settings
class ServeConfig:
    """Settings of a server; every limit is answered with an error that names it."""

    host: str = Field("127.0.0.1", description="address to listen on; others need a token")
    port: int = Field(8000, ge=0, le=65535, description="0: any that is free")
    token: str | None = Field(None, min_length=8, description="clients must send it as API key")
    max_batch: int = Field(8, ge=1, description="rows in one forward pass")
    max_queue: int = Field(64, ge=0, description="rows that may wait for a place")
    max_choices: int = Field(16, ge=1, description="answers (n) and prompts of one request")
    max_prompt_length: int = Field(32768, ge=1, description="tokens of a prompt")
    max_gen_length: int = Field(4096, ge=1, description="tokens of an answer")
    max_seconds: float = Field(300.0, gt=0, description="time that a request may take")
    max_body: int = Field(2**20, ge=1024, description="bytes of a request")
    drain_seconds: int = Field(30, ge=0, description="time for open requests after SIGTERM")

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise InputError(
                f"host is {self.host!r} and no token is set: anyone who reaches this machine could"
                " use the model; set a token (XPREDFLOW_TOKEN) or listen on 127.0.0.1"
            )

    @property
    def capacity(self) -> int:
        """Rows that are accepted at once: in the batch, and waiting."""
        return self.max_batch + self.max_queue


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
