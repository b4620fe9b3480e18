import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { findQemuPlace } from "./host.ts";
import { makeNurseryPlace } from "./nursery.ts";

it("is no deeper than the places of instances: where those have room for their sockets, it has", async () => {
  const stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-nursery-"));
  try {
    const place = findQemuPlace({ stateDirectory });
    const { directory } = await makeNurseryPlace(place);
    expect(directory.length).toBeLessThanOrEqual(place.machineDirectory(createSandboxId()).length);
  } finally {
    await rm(stateDirectory, { recursive: true });
  }
});
