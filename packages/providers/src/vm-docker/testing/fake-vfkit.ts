#!/usr/bin/env node
// Fakes vfkit: an engine that answers, and the part of vfkit's API that the driver calls.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";

const text = process.argv.slice(2).join("\n");
const [, engineSocket] = /socketURL=([^,\n]+),connect/.exec(text) ?? [];
const [, controlSocket] = /^unix:\/\/(.+)$/m.exec(text) ?? [];
const [, consoleLog] = /logFilePath=(.+)/.exec(text) ?? [];
writeFileSync(String(consoleLog), "booted\n");
createServer((request, response) => {
  request.resume().once("end", () => response.end("OK"));
}).listen(engineSocket);
createServer((request, response) => {
  if (request.method === "POST" && request.url === "/vm/state") response.end(() => process.exit(0));
}).listen(controlSocket);
