import fc from "fast-check";
import { expect, it } from "vitest";
import { scriptedSandbox } from "../testing/scripted-sandbox.ts";

const EXIT = { exitCode: 0, signal: null, timedOut: false, outOfMemory: false, durationMs: 1 };

/** The next step: the node sends bytes, repeats bytes, or the connection is cut. */
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("send" as const), bytes: fc.integer({ min: 1, max: 40 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("repeat" as const), bytes: fc.integer({ min: 1, max: 40 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("cut" as const), bytes: fc.constant(0) }) },
);

it("reassembles output byte by byte, wherever connections are cut and whichever chunks repeat", async () => {
  const property = fc.asyncProperty(
    fc.string({ unit: "grapheme", maxLength: 200 }),
    fc.array(step),
    async (text, steps) => {
      const output = new TextEncoder().encode(text);
      const { sandbox, sockets, timing } = await scriptedSandbox();
      const result = sandbox.exec("command");
      let position = 0;
      const connect = () => {
        sockets.last.accept();
        const { open } = sockets.last;
        position = open.kind === "process" ? open.offset : 0;
        sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
      };
      const send = (offset: number, length: number) => {
        const bytes = output.slice(offset, offset + length);
        sockets.last.data({ stream: 0, source: "stdout", offset, bytes });
        position = offset + bytes.length;
      };
      connect();
      for (const { kind, bytes } of steps) {
        if (kind === "cut") {
          sockets.last.cut();
          await timing.advance(100);
          connect();
        } else send(kind === "send" ? position : Math.max(0, position - bytes), bytes);
      }
      send(position, output.length);
      sockets.last.reply({ type: "end", stream: 0, exit: EXIT, offset: output.length });
      expect((await result).stdout).toBe(text);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});
