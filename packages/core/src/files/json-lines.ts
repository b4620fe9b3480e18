import type { z } from "zod";
import { invalidAnswer } from "../agent/agent-error.ts";
import type { InboundStream } from "../agent/inbound-stream.ts";

/** The checked lines of a stream of JSON lines; a line is never split between two chunks. */
export async function* jsonLines<S extends z.ZodType>(
  stream: InboundStream,
  schema: S,
  method: string,
): AsyncGenerator<z.output<S>, void, undefined> {
  const decoder = new TextDecoder();
  for await (const { bytes } of stream) {
    for (const line of decoder.decode(bytes).split("\n")) {
      if (line === "") continue;
      const parsed = schema.safeParse(parseJson(line));
      if (!parsed.success) throw invalidAnswer(method, "a line has the wrong shape");
      yield parsed.data;
    }
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
