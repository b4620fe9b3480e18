import { readFile } from "node:fs/promises";
import type { Client, Sandbox } from "@sandpiper/sdk";
import type { Benchmark, BenchmarkContext } from "../benchmark.ts";
import { guestPrograms } from "../guest-programs.ts";
import { interleave, measure, onePerRound } from "../interleave.ts";
import { BenchNetwork } from "../network/bench-network.ts";
import {
  dockerBridgeSubject,
  installClient,
  type NetworkSubject,
  sandpiperSubject,
  slirpSubject,
} from "../network/contestants.ts";
import { processorTimeMs } from "../network/processor-time.ts";
import { atLeast, atMost, combine, joined, p50Of, type Report, ratio, resultOf } from "../report.ts";
import { timed, timeTrue } from "../timed-run.ts";

const OURS = "sandpiper-gvisor";
const TRUE_PATH = "/tmp/true";
const TRANSFER_BYTES = 256 * 1024 * 1024;
const ROUNDS = 8;
const CONNECTIONS = 50;
const CREATE_ROUNDS = 30;
const EXECS = 40;
const REST_MS = 5;
/** Longer than the execs beside it take. */
const BULK_BYTES = 64 * 1024 ** 3;

export const benchmark: Benchmark = {
  title: "The network of a sandbox: connections, transfers, and what they cost",
  method: `One server in a network namespace behind a bridge; the node, a Docker Engine with that bridge, and slirp4netns take the same way to it. A static client inside measures itself. connect: until the echo of one byte has arrived, over a new connection each. Transfers: ${TRANSFER_BYTES / 1024 ** 2} MiB over one connection, until the receiver has all of it; processor time is that of the node with its sandbox, of the container, or of slirp4netns with its client, without the server and without work of the kernel that it counts for no process. exec: a static \`true\` through the SDK, alone and while one download runs in the same sandbox. create: through the SDK, without a network and with one.`,
  order: 98,
  timeLimitMs: 900_000,
  setUp: ["cluster", "docker", "slirp"],
  async run(context) {
    const network = await BenchNetwork.start(context.workspace);
    const client = network.node.client();
    const rules = [{ allow: `${network.server.address}/32` }];
    const sandbox = await client.sandboxes.create({
      network: { rules, limits: { maxConnectionsPerSecond: null } },
    });
    await installClient(sandbox, context.workspace);
    const program = await readFile((await guestPrograms(context.workspace)).true);
    await sandbox.files.write(TRUE_PATH, program, { mode: 0o755 });
    const subjects = [
      await sandpiperSubject(sandbox, network),
      await dockerBridgeSubject(network, context.workspace),
      await slirpSubject(network, context.workspace),
    ];
    const address = network.server.address;
    const reports = [
      await connections(subjects, address, context),
      await transfers("down", { subjects, address, context }),
      await transfers("up", { subjects, address, context }),
      await execsBesideTransfer(sandbox, { address, context }),
      await creates(client, { rules, context }),
    ];
    return joined(reports);
  },
};

async function connections(
  subjects: readonly NetworkSubject[],
  address: string,
  context: BenchmarkContext,
): Promise<Report> {
  const name = "network, connect and echo";
  const measured = await measure(
    subjects.map((subject) => ({
      subject: subject.name,
      perRound: CONNECTIONS,
      sample: async (count: number) =>
        (await subject.run(["connect", address, `${count}`]))
          .trim()
          .split("\n")
          .map((line) => Number(line) / 1000),
    })),
    { name, rounds: ROUNDS, context },
  );
  return { ...measured, targets: [atMost("network: ms of connect and echo", p50Of(measured.results, OURS), 3)] };
}

interface TransferOptions {
  readonly subjects: readonly NetworkSubject[];
  readonly address: string;
  readonly context: BenchmarkContext;
}

async function transfers(way: "down" | "up", { subjects, address, context }: TransferOptions): Promise<Report> {
  const turn = (subject: NetworkSubject) => async () => {
    const before = await processorTimeMs(subject.marks);
    const tookMs = Number(await subject.run([way, address, `${TRANSFER_BYTES}`]));
    const usedMs = (await processorTimeMs(subject.marks)) - before;
    return { speed: TRANSFER_BYTES / 1e6 / (tookMs / 1000), cpuMsPerGb: usedMs / (TRANSFER_BYTES / 1e9) };
  };
  const turns = Object.fromEntries(subjects.map((subject) => [subject.name, turn(subject)]));
  const { samples, problems } = await interleave(onePerRound(turns), { rounds: ROUNDS, context });
  const results = [...samples].flatMap(([subject, taken]) => [
    resultOf(
      `network, ${way}`,
      subject,
      taken.map(({ speed }) => speed),
      "MB/s",
    ),
    resultOf(
      `network, ${way}, processor time per GB`,
      subject,
      taken.map(({ cpuMsPerGb }) => cpuMsPerGb),
    ),
  ]);
  return {
    results,
    problems: problems.map((problem) => `network, ${way}, ${problem}`),
    targets: [atLeast(`network: MB/s ${way}`, p50Of(results, OURS, `network, ${way}`), 100)],
  };
}

async function execsBesideTransfer(
  sandbox: Sandbox,
  { address, context }: Omit<TransferOptions, "subjects">,
): Promise<Report> {
  const name = "network, exec";
  const execs = (count: number) => timeTrue(sandbox, TRUE_PATH, { count, restMs: REST_MS });
  const measured = await measure(
    [
      { subject: "alone", perRound: EXECS, sample: execs },
      {
        subject: "beside a download",
        perRound: EXECS,
        sample: async (count) => {
          const bulk = await sandbox.start(["/tmp/net", "down", address, `${BULK_BYTES}`]);
          try {
            return await execs(count);
          } finally {
            await bulk.kill();
            await bulk.wait();
          }
        },
      },
    ],
    { name, rounds: ROUNDS, context },
  );
  const times = ratio(p50Of(measured.results, "beside a download"), p50Of(measured.results, "alone"));
  return { ...measured, targets: [atMost("network: exec beside a download, times alone", times, 2)] };
}

async function creates(
  client: Client,
  { rules, context }: { readonly rules: { allow: string }[]; readonly context: BenchmarkContext },
): Promise<Report> {
  const name = "network, create";
  const create = (options: Parameters<Client["sandboxes"]["create"]>[0]) => async () => {
    let created: Sandbox | undefined;
    const tookMs = await timed(async () => {
      created = await client.sandboxes.create(options);
    });
    await created?.destroy();
    return tookMs;
  };
  const turns = { "without a network": create({}), "with rules": create({ network: { rules } }) };
  const measured = await measure(onePerRound(turns), { name, rounds: CREATE_ROUNDS, context });
  const of = (subject: string) => p50Of(measured.results, subject);
  const more = combine([of("with rules"), of("without a network")], (one, other) => one - other);
  return { ...measured, targets: [atMost("network: ms that create takes longer with a network", more, 5)] };
}
