import { createSandboxId } from "@sandpiper/protocol";
import { rejection } from "@sandpiper/protocol/testing";
import { Sandbox } from "../sandbox/sandbox.ts";
import { eventually } from "./contract-sandbox.ts";
import { COUNT, numbers, readLines } from "./counting.ts";
import type { HostProgramOptions, HostPrograms, ReadyHostProgram } from "./host-programs.ts";
import type { ContractContext } from "./provider-contract.ts";

/** Instances that outlive the program that created them. */
export function describeAdoption(context: ContractContext): void {
  const { capabilities, framework, programs } = context;
  const skip = (why: string) =>
    framework.it.skip(`adopts a sandbox that an earlier program left running (skipped: ${why})`, async () => {});
  if (!capabilities.supportsAdopt) skip("this provider declares supportsAdopt false");
  else if ("skipped" in programs) skip(programs.skipped);
  else describeOrphans(context, programs);
}

function describeOrphans(context: ContractContext, programs: HostPrograms): void {
  const { framework, provider, config, crash, leftovers } = context;
  const { describe, it, expect } = framework;

  /** A sandbox whose program was killed. */
  const orphan = async (options: HostProgramOptions): Promise<ReadyHostProgram> => {
    const program = programs.start({ ...options, config: { ...config, ...options.config } });
    const ready = await program.ready();
    await program.kill();
    return ready;
  };

  describe("adoption", () => {
    it("adopts a sandbox that an earlier program left running, with its configuration", async () => {
      const { id } = await orphan({ config: { name: "orphan", timeoutMs: 60_000 } });
      const next = programs.next();
      const sandbox = await Sandbox.adopt(next, id);
      expect(sandbox.config).toMatchObject({ name: "orphan", timeoutMs: 60_000 });
      expect((await sandbox.exec("echo still here")).stdout).toBe("still here\n");
      await sandbox.destroy();
      expect(await leftovers(next, id)).toEqual([]);
    });

    it("resumes the output of a running process at the byte where the killed program stopped reading", async () => {
      const { id, process, output } = await orphan({ command: COUNT, readBytes: 6 });
      await using sandbox = await Sandbox.adopt(programs.next(), id);
      const handle = await sandbox.attach(String(process), { offset: output.length });
      const text = output + (await readLines(handle, 10)).text;
      expect(text).toBe(numbers(text));
      await sandbox.exec("touch stop");
      expect(await handle.wait()).toMatchObject({ exitCode: 0 });
    });

    it("keeps the files of a sandbox whose program was killed", async () => {
      const { id } = await orphan({ command: "echo kept > kept; echo written; sleep 60", readBytes: 1 });
      await using sandbox = await Sandbox.adopt(programs.next(), id);
      expect(await sandbox.readTextFile("kept")).toBe("kept\n");
    });

    it("lets exactly one of several programs adopt a sandbox", async () => {
      const { id } = await orphan({ command: "sleep 60" });
      const outcomes = await Promise.allSettled([1, 2, 3].map(() => Sandbox.adopt(programs.next(), id)));
      const adopted = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
      const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
      expect([adopted.length, refused.map(({ code }) => code)]).toEqual([
        1,
        ["failed_precondition", "failed_precondition"],
      ]);
      for (const sandbox of adopted) {
        expect((await sandbox.exec("echo here")).stdout).toBe("here\n");
        await sandbox.destroy();
      }
    });

    it("adopts a sandbox again after the program that adopted it was killed", async () => {
      const first = await orphan({ command: "sleep 60" });
      const second = await orphan({ adopt: first.id, command: "sleep 61" });
      await using sandbox = await Sandbox.adopt(programs.next(), first.id);
      const running = (await sandbox.processes()).map(({ id }) => id);
      expect(running.sort()).toEqual([first.process, second.process].sort());
    });

    it("refuses to adopt a sandbox whose program is alive, and leaves it alone", async () => {
      await using sandbox = await Sandbox.create(provider(), { ...config });
      for (const other of [provider(), programs.next()]) {
        expect(await rejection(other.adopt(sandbox.id))).toMatchObject({
          code: "failed_precondition",
          reason: "instance_owned",
        });
      }
      expect((await sandbox.exec("echo untouched")).stdout).toBe("untouched\n");
    });

    it("refuses to adopt an unknown id", async () => {
      expect((await rejection(provider().adopt(createSandboxId()))).code).toBe("not_found");
    });

    it("refuses to adopt an instance that was killed together with its program, and removes it", async () => {
      const { id } = await orphan({});
      const next = programs.next();
      await crash(next, id);
      await eventually(async () => (await next.list()).some((record) => record.id === id && !record.isRunning));
      expect((await rejection(next.adopt(id))).reason).toBe("instance_ended");
      await next.remove(id);
      expect(await leftovers(next, id)).toEqual([]);
    });
  });
}
