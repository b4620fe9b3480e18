import { Agent, type AgentOptions, type ClientRequest } from "node:http";
import { Agent as TlsAgent } from "node:https";
import type { Endpoint } from "./endpoint.ts";

const OPTIONS: AgentOptions = { keepAlive: true };

/** The connection pool of one engine. */
export function engineAgent({ url, tls }: Endpoint): Agent {
  const isTls = url.protocol === "https:";
  const agent = isTls ? new TlsAgent({ ...OPTIONS, rejectUnauthorized: tls?.isVerified ?? true }) : new Agent(OPTIONS);
  return noticingCutAnswers(agent);
}

/** A method of every http.Agent that the types of Node.js omit. */
interface RequestTaker {
  addRequest(request: ClientRequest, ...rest: readonly unknown[]): void;
}

/** Fails a call whose response was cut off; the client library would wait forever. */
function noticingCutAnswers(agent: Agent): Agent {
  const taker = agent as Agent & RequestTaker;
  const addRequest = taker.addRequest.bind(agent);
  taker.addRequest = (request: ClientRequest, ...rest: readonly unknown[]) => {
    request.once("response", (response) => {
      response.once("close", () => {
        if (response.complete) return;
        const error = new Error("the engine's response was cut off");
        request.emit("error", Object.assign(error, { code: "ECONNRESET" }));
      });
    });
    addRequest(request, ...rest);
  };
  return agent;
}
