import { rejection } from "@sandpiper/protocol/testing";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { eventually, shareSandbox, textOf } from "./contract-sandbox.ts";
import type { ContractContext } from "./provider-contract.ts";

export function describeCode(context: ContractContext): void {
  const { describe, it, expect } = context.framework;

  describe("code", () => {
    const sandbox = shareSandbox(context);

    it("runs source code in its language", async () => {
      const result = await sandbox().executeCode("sh", "echo from code; exit 4");
      expect(result).toMatchObject({ exitCode: 4, stdout: "from code\n" });
    });

    it("runs code that is too long for an argument", async () => {
      const code = `${"# a comment that fills the file\n".repeat(20_000)}echo long\n`;
      expect((await sandbox().executeCode("sh", code)).stdout).toBe("long\n");
    });

    it("passes input and environment to code", async () => {
      const result = await sandbox().executeCode("sh", 'echo "$WHO"; cat', { stdin: "input", env: { WHO: "me" } });
      expect(result.stdout).toBe("me\ninput");
    });

    it("lists the available languages when it does not know one", async () => {
      const error = await rejection(sandbox().executeCode("klingon", "batlh"));
      expect(error).toMatchObject({ code: "invalid_argument", reason: "unknown_language" });
      expect(error.hint).toContain("sh");
    });

    it("starts code as a process whose output can be read later", async () => {
      const started = await sandbox().startCode("sh", 'echo "$WHO"; echo "$0"; exit 3', {
        id: "code",
        env: { WHO: "me" },
      });
      await using process = await sandbox().attach(started.id);
      expect(process.id).toBe("code");
      expect((await process.wait()).exitCode).toBe(3);
      const [who, path = ""] = (await textOf(process.stdout)).split("\n");
      expect(who).toBe("me");
      await eventually(async () => await isMissing(sandbox(), path));
      const error = await rejection(sandbox().startCode("klingon", "batlh"));
      expect(error).toMatchObject({ code: "invalid_argument", reason: "unknown_language" });
    });

    it("leaves no source file behind", async () => {
      const path = (await sandbox().executeCode("sh", 'echo "$0"')).stdout.trim();
      expect(path).toContain("/");
      await eventually(async () => await isMissing(sandbox(), path));
    });
  });
}

async function isMissing(sandbox: Sandbox, path: string): Promise<boolean> {
  return sandbox.files.stat(path).then(
    () => false,
    (error) => error.code === "not_found",
  );
}
