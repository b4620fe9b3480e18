import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { encodeAnswer, parseQuestion } from "./dns-message.ts";
import type { Zone } from "./zone.ts";

const RESPONSE_CODES = { "server failure": 2, "name error": 3 } as const;

/** Serves a zone over UDP and TCP. */
export async function serveDns(zone: Zone, address: string): Promise<void> {
  const udp = createSocket("udp4");
  udp.on("message", (message, { address: host, port }) => {
    const answer = answerTo(zone, message);
    if (answer !== undefined) udp.send(answer, port, host);
  });
  udp.bind(53, address);
  await once(udp, "listening");
  const tcp = createServer((socket) => {
    let pending = Buffer.alloc(0);
    socket
      .on("error", () => undefined)
      .on("data", (bytes: Buffer) => {
        pending = Buffer.concat([pending, bytes]);
        while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
          const end = 2 + pending.readUInt16BE(0);
          const answer = answerTo(zone, pending.subarray(2, end));
          pending = pending.subarray(end);
          if (answer === undefined) continue;
          const length = Buffer.alloc(2);
          length.writeUInt16BE(answer.length);
          socket.write(Buffer.concat([length, answer]));
        }
      });
  });
  tcp.listen(53, address);
  await once(tcp, "listening");
}

/** Nothing for names whose server is silent. */
function answerTo(zone: Zone, message: Buffer): Buffer | undefined {
  const question = parseQuestion(message);
  const answer = zone.answer(question);
  if (answer === "silence") return undefined;
  if (typeof answer === "string") return encodeAnswer(question, [], RESPONSE_CODES[answer]);
  return encodeAnswer(question, answer);
}
