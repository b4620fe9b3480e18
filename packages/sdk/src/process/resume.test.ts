import fc from "fast-check";
import { expect, it } from "vitest";
import { EXIT, executing } from "../testing/scripted-sandbox.ts";

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
      const { sockets, cut, result } = await executing();
      let position = 0;
      const opened = () => {
        const { open } = sockets.last;
        position = open.kind === "process" ? open.offset : 0;
        sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
      };
      const send = (offset: number, length: number) => {
        const bytes = output.slice(offset, offset + length);
        sockets.last.data({ stream: 0, source: "stdout", offset, bytes });
        position = offset + bytes.length;
      };
      opened();
      for (const { kind, bytes } of steps) {
        if (kind === "cut") {
          await cut();
          opened();
        } else send(kind === "send" ? position : Math.max(0, position - bytes), bytes);
      }
      send(position, output.length);
      sockets.last.reply({ type: "end", stream: 0, exit: EXIT, offset: output.length });
      expect((await result).stdout).toBe(text);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});
