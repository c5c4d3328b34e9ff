"""The learned step-size policy: a Beta density over a log-scale fraction (Eq. 15 to 19)."""

import json
import math
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from xpredflow.engine.randomness import numpy_generator
from xpredflow.errors import InputError
from xpredflow.files import explained, is_finite, read_object, save_tensors, write_atomically
from xpredflow.policies.beta_config import BetaConfig
from xpredflow.policies.view import view, view_size
from xpredflow.types import Action, Signals, StepInfo

LOG2_A_MIN = -8.0  # a ∈ [1/256, 1]
# What rules were called in policies that were saved before they said what they bound.
OLD_NAMES = {
    "commit_below": "commit_max_progress",
    "commit_above": "commit_threshold",
    "commit_bound": "commit_entropy",
    "steps": "budget",
}


class BetaNetwork(nn.Module):
    """s → (μ, κ): two SiLU layers and two heads (Eq. 17)."""

    def __init__(self, config: BetaConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or BetaConfig()
        self.trunk = nn.Sequential(
            nn.Linear(view_size(config.view), config.hidden),
            nn.SiLU(),
            nn.Linear(config.hidden, config.hidden),
            nn.SiLU(),
        )
        heads = 3 if self.sets_thresholds else 1
        self.mean = nn.Linear(config.hidden, heads)
        self.concentration = nn.Linear(config.hidden, heads)

    @property
    def sets_thresholds(self) -> bool:
        """Whether y has three numbers: for the step, the commitment and the re-editing."""
        return self.config.actions == "thresholds"

    def forward(
        self, s: Float[Tensor, "*S F"]
    ) -> tuple[Float[Tensor, "*S_A"], Float[Tensor, "*S_A"]]:
        h = self.trunk(s)
        mu = 0.05 + 0.9 * self.mean(h).squeeze(-1).sigmoid()
        low, high = self.config.kappa_min, self.config.kappa_max
        kappa = low + (high - low) * self.concentration(h).squeeze(-1).sigmoid()
        return mu, kappa


def to_fraction(y: Float[Tensor, "*S"]) -> Float[Tensor, "*S"]:
    """a = 2^u, u = log2 a_min + y (log2 a_max − log2 a_min) (Eq. 19)."""
    return torch.exp2(LOG2_A_MIN * (1 - y))


def to_threshold(z: Float[Tensor, "*S"]) -> Float[Tensor, "*S"]:
    """The confidence from which a position is committed: 1/2 at z = 0, 0.999 at z = 1."""
    return 1 - torch.exp2(-1 - 9 * z)


def expected_fraction(mu: Float[Tensor, "*S"], kappa: Float[Tensor, "*S"]) -> Float[Tensor, "*S"]:
    """E[a] = a_min · ₁F₁(μκ; κ; ln 256), not 2^E[u]: the series of the moment generating function.

    Its terms are positive and fall faster than 5.55ⁿ/n!, so 48 of them reach fp64's last digit.
    Each is the one before times (α + n)/(κ + n) · z/(n + 1): all of them are one running product.
    """
    alpha, total = (mu * kappa).double().unsqueeze(-1), kappa.double().unsqueeze(-1)
    n, ratio = _series(mu.device)
    terms = ((alpha + n) / (total + n) * ratio).cumprod(-1)
    return (2.0**LOG2_A_MIN * (1 + terms.sum(-1))).to(mu.dtype)


@cache
def _series(device: torch.device) -> tuple[Float[Tensor, " 48"], Float[Tensor, " 48"]]:
    """n and z/(n + 1), z = ln 256, made once for a device."""
    n = torch.arange(48, dtype=torch.float64, device=device)
    return n, -LOG2_A_MIN * math.log(2) / (n + 1)


def log_density(
    y: Float[Tensor, "*S"], mu: Float[Tensor, "*S"], kappa: Float[Tensor, "*S"]
) -> Float[Tensor, "*S"]:
    """log Beta(y; μκ, (1−μ)κ) (Eq. 18)."""
    return torch.distributions.Beta(mu * kappa, (1 - mu) * kappa, validate_args=False).log_prob(y)


def joint_log_density(
    network: BetaNetwork, y: Float[Tensor, "M *A"], s: Float[Tensor, "M F"]
) -> Float[Tensor, " M"]:
    """log-density of all that was drawn at a position together."""
    density = log_density(y, *network(s))
    return density.sum(-1) if network.sets_thresholds else density


@dataclass(frozen=True)
class LearnedPolicy:
    """`learned:tiny` or `learned:FILE`: the expected action, or one sampled at `temperature`.

    The temperature divides κ.
    """

    name: ClassVar[str] = "learned"
    network: BetaNetwork
    temperature: float | None = None
    trained_with: dict[str, Any] = field(default_factory=dict)  # among it the flow's rules
    source: str = ""  # where it was loaded from

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        s = view(self.network.config.view, signals, progress, info.rho)
        with torch.no_grad():
            mu, kappa = self.network.to(s.device)(s)  # loaded on the CPU, used where the model is
        drawn = self.temperature is not None
        if drawn:
            kappa = kappa / self.temperature
        y = sample(mu, kappa, info) if drawn else mu
        density = log_density(y, mu, kappa) if drawn else None
        if not self.sets_thresholds:
            fraction = to_fraction(y) if drawn else expected_fraction(mu, kappa)
            return Action(fraction, s, y if drawn else None, density)
        step, commit, margin = y.unbind(-1)
        fraction = to_fraction(step) if drawn else expected_fraction(mu[..., 0], kappa[..., 0])
        if density is not None:
            density = density.sum(-1)
        thresholds = to_threshold(commit), margin
        return Action(fraction, s, y if drawn else None, density, *thresholds)

    @property
    def sets_thresholds(self) -> bool:
        """Whether it also says from which confidence on to commit, and when to re-edit."""
        return self.network.sets_thresholds


def sample(
    mu: Float[Tensor, "B N *A"], kappa: Float[Tensor, "B N *A"], info: StepInfo
) -> Float[Tensor, "B N *A"]:
    """y ~ Beta, row by row from the row's own generator, kept off the ends of [0, 1]."""
    # one copy from the device and one back, whatever the batch
    alpha, beta = torch.stack((mu * kappa, (1 - mu) * kappa)).double().cpu().numpy()
    rows = [numpy_generator(info, i).beta(alpha[i], beta[i]) for i in range(len(alpha))]
    y = torch.from_numpy(np.stack(rows)).to(mu)
    return y.clamp(1e-6, 1 - 1e-6)


def save_policy(network: BetaNetwork, path: Path, training: dict[str, Any]) -> None:
    """FILE.safetensors with the weights, FILE.json with the shape and how it was trained.

    The second names the first by its contents: a kill between the two must not leave weights that
    are described as others.
    """
    path = path.with_suffix(".safetensors")
    save_tensors(network.state_dict(), path)
    about = {"config": asdict(network.config), "training": training, "weights": _digest(path)}
    write_atomically(path.with_suffix(".json"), json.dumps(about, indent=2) + "\n")


def _digest(weights: Path) -> str:
    return blake2b(weights.read_bytes(), digest_size=8).hexdigest()


def embedded_policies() -> dict[str, Path]:
    """The learned policies that come with the package, by name."""
    found = (Path(str(files("xpredflow"))) / "assets" / "policies").glob("*.safetensors")
    return {file.stem: file for file in sorted(found, key=lambda file: file.stem)}


def policy_files(source: str | Path) -> tuple[Path, Path]:
    """The weights and the description of an embedded policy or of a saved one.

    The name wins over a file of that name: write ./tiny for the file.
    """
    path = embedded_policies().get(str(source)) or Path(source)
    pair = path.with_suffix(".safetensors"), path.with_suffix(".json")
    for file in pair:
        try:
            there = file.is_file()
        except OSError as error:  # a name that no file can have
            raise InputError(f"policy {str(source)!r:.80}: {explained(error)}") from error
        if not there:
            names = ", ".join(embedded_policies())
            raise InputError(
                f"policy file {str(file)!r} does not exist: a learned policy is the pair"
                " NAME.safetensors and NAME.json; give the path of either, or the name of one"
                f" that comes with the package ({names})"
            )
    return pair


def load_policy(source: str | Path, temperature: float | None = None) -> LearnedPolicy:
    """What `save_policy` wrote, or an embedded one; both files must fit each other.

    generate(model, question, decoder=Flow(load_policy("runs/policy/best.safetensors")))
    """
    weights, about = policy_files(source)
    try:
        description = read_object(about, "restore it")
        network = BetaNetwork(BetaConfig(**description["config"]))
        tensors = load_file(weights)
        if bad := next((name for name, t in tensors.items() if not is_finite(t)), None):
            raise InputError(f"{bad} holds NaN or infinity")
        if description.get("weights", found := _digest(weights)) != found:
            raise InputError(f"{about.name} describes other weights")
        network.load_state_dict(tensors)
        trained = description.get("training", {})
        config = dict(trained.get("config", {}))
    # ValueError: bad JSON, bad settings, bad values
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RuntimeError,
        SafetensorError,
    ) as error:
        raise InputError(
            f"policy {str(weights)!r} cannot be read ({error}): train it anew or restore the pair"
            " of files from where it was saved"
        ) from error
    trained_with = {OLD_NAMES.get(str(name), str(name)): v for name, v in config.items()}
    return LearnedPolicy(network.eval(), temperature, trained_with, str(source))
