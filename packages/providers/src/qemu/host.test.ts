import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { createTransientMachine } from "../host/transient-machine.ts";
import { findQemuState } from "./host.ts";

it("is no deeper than the places of instances: where those have room for their sockets, it has", async () => {
  const stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-nursery-"));
  try {
    const place = findQemuState({ stateDirectory });
    const { directory } = await createTransientMachine(place);
    expect(directory.length).toBeLessThanOrEqual(place.machineDirectory(createSandboxId()).length);
  } finally {
    await rm(stateDirectory, { recursive: true });
  }
});
