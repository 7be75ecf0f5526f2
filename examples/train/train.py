#!/usr/bin/env python3
"""Trains a small character-level language model on text.txt, on as many ranks as there are.

    torchrun --nproc-per-node 2 train.py                     distributed (gloo, CPU)
    python3 train.py                                         alone
    python3 train.py --config small.conf --checkpoint x.pt   other settings

It is an ordinary PyTorch program: DistributedDataParallel, ranks found through the environment
(RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT). It prints one line per step, saves a checkpoint that
is never half written, and goes on from there when it is started again.

Two things are for a workload manager, and are left out where nobody listens: the notify protocol of
systemd (NOTIFY_SOCKET; READY=1 when all ranks have met), and X_TUTTI_STEP, X_TUTTI_CHECKPOINT.
"""
import argparse
import os
import signal
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SETTINGS = {
    "steps": 40,
    "batch": 16,  # sequences per rank and step
    "length": 48,  # characters per sequence
    "hidden": 96,
    "learning_rate": 0.01,
    "checkpoint_every": 10,
    "seed": 1,
}


def read_settings(path):
    """SETTINGS with the `key: value` lines of the file; keys that are not ours are ignored."""
    settings = dict(SETTINGS)
    if path is None:
        return settings
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            key, colon, value = line.split("#")[0].partition(":")
            if not colon or key.strip() not in settings:
                continue
            kind = type(settings[key.strip()])
            try:
                settings[key.strip()] = kind(value.strip())
            except ValueError:
                sys.exit(f"{path}:{number}: `{key.strip()}` expects {kind.__name__}, not `{value.strip()}`")
    return settings


def notify(**fields):
    """Tells who started us how far we are, as sd_notify(3) does."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    text = "\n".join(f"{key}={value}" for key, value in fields.items())
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(text.encode(), address)
    except OSError as error:  # progress is worth a word, not a failed training
        print(f"notify: {error}", file=sys.stderr)


class Model(nn.Module):
    def __init__(self, characters, hidden):
        super().__init__()
        self.embed = nn.Embedding(characters, hidden)
        self.recur = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, characters)

    def forward(self, characters):
        return self.head(self.recur(self.embed(characters))[0])


def read_text(path):
    """The text as numbers, and how many different characters it has."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    alphabet = sorted(set(text))
    index = {character: number for number, character in enumerate(alphabet)}
    return torch.tensor([index[c] for c in text]), len(alphabet)


def draw_batch(data, settings, step, rank):
    """Different for each step and rank, the same in every run."""
    source = torch.Generator().manual_seed(settings["seed"] * 1_000_003 + step * 1009 + rank)
    length = settings["length"]
    starts = torch.randint(0, len(data) - length - 1, (settings["batch"],), generator=source)
    rows = torch.stack([data[s:s + length + 1] for s in starts])
    return rows[:, :-1], rows[:, 1:]


def save(path, step, model, optimiser):
    """Whole or not at all: written beside, made durable, then put in place."""
    beside = f"{path}.{os.getpid()}.part"
    with open(beside, "wb") as file:
        torch.save({"step": step, "model": model.state_dict(), "optimiser": optimiser.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


class Notice:
    """Whether we were told to leave: SIGTERM, before the end. All ranks act on it in the same step."""

    def __init__(self):
        self.heard = False
        signal.signal(signal.SIGTERM, self.on_signal)

    def on_signal(self, number, frame):
        self.heard = True

    def anybody(self):
        heard = torch.tensor([1.0 if self.heard else 0.0])
        dist.all_reduce(heard)
        return heard.item() > 0


def join():
    """This process's rank and the number of ranks, when all of them have met."""
    os.environ.setdefault("RANK", "0")
    os.environ.setdefault("WORLD_SIZE", "1")
    if os.environ["WORLD_SIZE"] == "1":
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            os.environ.setdefault("MASTER_PORT", str(probe.getsockname()[1]))
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()
    present = torch.ones(1)
    dist.all_reduce(present)
    if int(present.item()) != world:
        sys.exit(f"rank {rank}: only {int(present.item())} of {world} ranks answered")
    notify(READY=1, X_TUTTI_RANK=rank, X_TUTTI_WORLD_SIZE=world)
    if rank == 0:
        print(f"ranks met: world {world}", flush=True)
    return rank, world


def train(settings, text, checkpoint):
    rank, world = join()
    notice = Notice()
    data, characters = read_text(text)
    torch.manual_seed(settings["seed"])
    model = Model(characters, settings["hidden"])
    optimiser = torch.optim.Adam(model.parameters(), lr=settings["learning_rate"])
    begin = 0
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint, map_location="cpu")
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        begin = saved["step"]
        if rank == 0:
            print(f"resumed at step {begin} from {checkpoint}", flush=True)
    dist.barrier()  # nobody saves before all have read
    parallel = DistributedDataParallel(model)
    criterion = nn.CrossEntropyLoss()
    started = time.monotonic()
    for step in range(begin + 1, settings["steps"] + 1):
        inputs, wanted = draw_batch(data, settings, step, rank)
        loss = criterion(parallel(inputs).flatten(0, 1), wanted.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"step {step} loss {mean.item() / world:.4f}", flush=True)
            notify(X_TUTTI_STEP=step)
        leaving = notice.anybody() and step < settings["steps"]
        if rank == 0:
            if leaving or step % settings["checkpoint_every"] == 0 or step == settings["steps"]:
                save(checkpoint, step, model, optimiser)
                notify(X_TUTTI_CHECKPOINT=step)
                print(f"checkpoint {checkpoint} at step {step}", flush=True)
        if leaving:
            dist.barrier()  # saved before anybody is gone
            if rank == 0:
                print(f"told to leave at step {step}", flush=True)
            sys.exit(128 + signal.SIGTERM)
    if rank == 0:
        print(f"done: {max(0, settings['steps'] - begin)} steps in {time.monotonic() - started:.1f} s", flush=True)
    dist.barrier()
    notify(STOPPING=1)
    dist.destroy_process_group()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", help="a file of `key: value` lines: " + ", ".join(SETTINGS))
    parser.add_argument("--steps", type=int, help="instead of the configured number")
    parser.add_argument("--text", default=os.path.join(here, "text.txt"), help="what to learn from")
    parser.add_argument("--checkpoint", default="checkpoint.pt", help="saved to, and resumed from")
    arguments = parser.parse_args()
    settings = read_settings(arguments.config)
    if arguments.steps is not None:
        settings["steps"] = arguments.steps
    torch.set_num_threads(1)  # several ranks share this machine
    train(settings, arguments.text, arguments.checkpoint)
    return 0


if __name__ == "__main__":
    sys.exit(main())
