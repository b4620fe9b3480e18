import { rejection } from "@sandpiper/protocol/testing";
import type { FileEvent } from "../files/file-watcher.ts";
import { isEqualBytes, sampleBytes, shareSandbox, textOf } from "./contract-sandbox.ts";
import type { ContractContext } from "./provider-contract.ts";

export function describeFiles(context: ContractContext): void {
  const { describe, it, expect } = context.framework;

  describe("files", () => {
    const sandbox = shareSandbox(context);

    it("keeps any bytes unchanged", async () => {
      const bytes = sampleBytes(3_000_001);
      await sandbox().writeFile("round-trip.bin", bytes);
      expect(isEqualBytes(await sandbox().readFile("round-trip.bin"), bytes)).toBe(true);
    });

    it("keeps an empty file empty", async () => {
      await sandbox().writeFile("empty", "");
      expect((await sandbox().readFile("empty")).length).toBe(0);
    });

    it("creates missing directories and replaces existing files", async () => {
      await sandbox().writeFile("a/b/c.txt", "old and longer");
      await sandbox().writeFile("a/b/c.txt", "new");
      expect(await sandbox().readTextFile("a/b/c.txt")).toBe("new");
    });

    it("shares files with commands", async () => {
      await sandbox().writeFile("shared.txt", "seen by cat\n");
      expect((await sandbox().exec("cat shared.txt")).stdout).toBe("seen by cat\n");
    });

    it("writes a stream piece by piece", async () => {
      async function* pieces() {
        for (let piece = 0; piece < 30; piece++) yield new TextEncoder().encode(`${piece},`.repeat(10_000));
      }
      const { sizeBytes } = await sandbox().files.write("pieces.txt", pieces());
      expect((await sandbox().files.stat("pieces.txt")).sizeBytes).toBe(sizeBytes);
      expect((await sandbox().readTextFile("pieces.txt")).endsWith("29,29,")).toBe(true);
    });

    it("leaves nothing of a file whose source fails", async () => {
      async function* broken() {
        yield sampleBytes(100_000);
        throw new Error("the source broke");
      }
      await sandbox().files.mkdir("broken");
      const error = await rejection(sandbox().writeFile("broken/file", broken()));
      expect(error.message).toContain("the source broke");
      await sandbox().exec("true");
      expect(await sandbox().listDir("broken")).toEqual([]);
    });

    it("reads a range", async () => {
      await sandbox().writeFile("range.txt", "0123456789");
      expect(await textOf(sandbox().files.read("range.txt", { offset: 3, lengthBytes: 4 }))).toBe("3456");
    });

    it("lends its memory to a reader that releases each piece", async () => {
      const bytes = sampleBytes(12_000_001);
      await sandbox().writeFile("lent.bin", bytes);
      const copy = new Uint8Array(bytes.length);
      let copied = 0;
      for await (const piece of sandbox().files.read("lent.bin", { lendsMemory: true })) {
        // A slow reader makes pieces wait.
        await new Promise((resolve) => setTimeout(resolve, 1));
        copy.set(piece, copied);
        copied += piece.length;
      }
      expect(copied === bytes.length && isEqualBytes(copy, bytes)).toBe(true);
    });

    it("continues after a reader has stopped early", async () => {
      await sandbox().writeFile("long.bin", sampleBytes(4_000_000));
      for await (const chunk of sandbox().files.read("long.bin")) {
        expect(chunk.length).toBeGreaterThan(0);
        break;
      }
      expect((await sandbox().exec("echo fine")).stdout).toBe("fine\n");
    });

    it("lists a directory by name", async () => {
      await sandbox().files.mkdir("listed/inner", { parents: true });
      await sandbox().writeFile("listed/b.txt", "12345");
      await sandbox().writeFile("listed/a.txt", "");
      await sandbox().writeFile("listed/inner/deep.txt", "x");
      expect(await sandbox().listDir("listed")).toMatchObject([
        { name: "a.txt", isDirectory: false, sizeBytes: 0 },
        { name: "b.txt", isDirectory: false, sizeBytes: 5 },
        { name: "inner", isDirectory: true },
      ]);
      const all = await Array.fromAsync(sandbox().files.list("listed", { depth: 0 }));
      expect(all.map(({ path }) => path)).toEqual(["a.txt", "b.txt", "inner", "inner/deep.txt"]);
    });

    it("describes, moves, protects and removes files", async () => {
      const { files } = sandbox();
      await files.write("moving.txt", "x", { mode: 0o640 });
      expect(await files.stat("moving.txt")).toMatchObject({ kind: "file", sizeBytes: 1, mode: 0o640 });
      await files.chmod("moving.txt", 0o600);
      await files.move("moving.txt", "moved.txt");
      expect(await files.stat("moved.txt")).toMatchObject({ kind: "file", mode: 0o600 });
      expect(await rejection(files.stat("moving.txt"))).toMatchObject({ code: "not_found" });
      await files.remove("moved.txt");
      expect(await rejection(files.remove("moved.txt"))).toMatchObject({ code: "not_found" });
      await files.remove("moved.txt", { missingOk: true });
    });

    it("removes a non-empty directory only on request", async () => {
      const { files } = sandbox();
      await files.write("full/file.txt", "x");
      expect((await rejection(files.remove("full"))).code).toBe("failed_precondition");
      await files.remove("full", { recursive: true });
      expect(await rejection(files.stat("full"))).toMatchObject({ code: "not_found" });
    });

    it("reports that a file does not exist", async () => {
      expect(await rejection(sandbox().readFile("/no/such/file"))).toMatchObject({ code: "not_found" });
      expect(await rejection(sandbox().listDir("/no/such/directory"))).toMatchObject({ code: "not_found" });
    });

    it("reports changes below a watched directory", async () => {
      await sandbox().files.mkdir("watched");
      await using watcher = await sandbox().files.watch("watched");
      await sandbox().writeFile("watched/new.txt", "x");
      const seen: FileEvent[] = [];
      for await (const event of watcher) {
        seen.push(event);
        if (event.path === "new.txt" || event.to === "new.txt") break;
      }
      const kinds = seen.filter(({ path, to }) => path === "new.txt" || to === "new.txt").map(({ kind }) => kind);
      expect(["create", "write", "rename"]).toContain(kinds[0]);
    });
  });
}
