export { createMemoryServer, type MemoryServer } from "./create-memory-server.ts";
export type { ExecAnswer, ExecCall, ExecHandler } from "./memory-process.ts";
