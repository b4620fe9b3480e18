import { rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { connectTo } from "../testing/connect.ts";
import { containerSpec } from "../testing/container-spec.ts";
import { startDockerd } from "../testing/dockerd.ts";
import { createVolumes, dataVolumeName, removeNamed, removeVolumes, workspaceVolumeName } from "./volumes.ts";

const home = "0123456789ab";
const signal = new AbortController().signal;

const engine = await shared(connectTo(await shared(startDockerd())));

async function volumeNames(): Promise<readonly string[]> {
  return (await engine.docker.listVolumes()).Volumes.map(({ Name }) => Name).sort();
}

describe("the volumes of a sandbox", () => {
  it("carry only the labels of their owner", async () => {
    const spec = containerSpec({ project: "shop", workspace: { git: "https://me:s3cret@example.org/a.git" } });
    await createVolumes(engine, spec, { home, signal });
    const names = [dataVolumeName(spec.id), workspaceVolumeName(spec.id)];
    expect(await volumeNames()).toEqual(names);
    for (const name of names) {
      expect((await engine.docker.getVolume(name).inspect()).Labels).toEqual({
        "sandpiper.managed": "true",
        "sandpiper.sandbox": spec.id,
        "sandpiper.project": "shop",
        "sandpiper.home": home,
      });
    }
    await removeVolumes(engine, spec.id, home);
    expect(await volumeNames()).toEqual([]);
  });

  it("are reused by the next instance; if that fails, only its new volumes are removed", async () => {
    const spec = containerSpec();
    expect(await createVolumes(engine, spec, { home, signal })).toEqual([dataVolumeName(spec.id)]);
    const rebuilt = containerSpec({ workspace: { git: "https://example.org/a.git" } }, spec.id);
    const created = await createVolumes(engine, rebuilt, { home, signal });
    expect(created).toEqual([workspaceVolumeName(spec.id)]);
    await removeNamed(engine, created);
    expect(await volumeNames()).toEqual([dataVolumeName(spec.id)]);
    await removeVolumes(engine, spec.id, home);
  });

  it("stay when a sandbox without volumes is removed", async () => {
    const spec = containerSpec();
    await createVolumes(engine, spec, { home, signal });
    await removeVolumes(engine, containerSpec().id, home);
    expect(await volumeNames()).toEqual([dataVolumeName(spec.id)]);
    await removeVolumes(engine, spec.id, home);
    await removeVolumes(engine, spec.id, home);
  });

  it("belong to one home; another neither uses nor removes them", async () => {
    const spec = containerSpec();
    await createVolumes(engine, spec, { home, signal });
    const other = "ba9876543210";
    expect(await rejection(createVolumes(engine, spec, { home: other, signal }))).toMatchObject({
      code: "failed_precondition",
      reason: "volume_of_another_home",
    });
    await removeVolumes(engine, spec.id, other);
    expect(await volumeNames()).toEqual([dataVolumeName(spec.id)]);
    await removeVolumes(engine, spec.id, home);
  });

  it("are removed when their creation is aborted or fails", async () => {
    const aborted = AbortSignal.abort();
    expect((await rejection(createVolumes(engine, containerSpec(), { home, signal: aborted }))).code).toBe("canceled");
    const spec = containerSpec({ workspace: { git: "https://example.org/a.git" } });
    await engine.docker.createVolume({ Name: workspaceVolumeName(spec.id) });
    expect((await rejection(createVolumes(engine, spec, { home, signal }))).reason).toBe("volume_of_another_home");
    expect(await volumeNames()).toEqual([workspaceVolumeName(spec.id)]);
    await removeNamed(engine, [workspaceVolumeName(spec.id)]);
  });
});
