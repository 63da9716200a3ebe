// Answers one line of JSON with one line of JSON, through the checkpointing service of gemini-cli-core.
import path from 'node:path';
import readline from 'node:readline';
import { pathToFileURL } from 'node:url';

const [, , packageFolder, tree] = process.argv;
const load = (name) => import(pathToFileURL(path.join(packageFolder, 'dist/src', name)).href);
const { GitService } = await load('services/gitService.js');
const { Storage } = await load('config/storage.js');
const service = new GitService(tree, new Storage(tree));

const answers = {
  open: async () => service.initialize(),
  snapshot: async () => service.createFileSnapshot('step'),
  restore: async (ref) => service.restoreProjectFromSnapshot(ref),
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { ask, ref } = JSON.parse(line);
  try {
    const value = await answers[ask](ref);
    process.stdout.write(JSON.stringify({ value: value ?? '' }) + '\n');
  } catch (error) {
    process.stdout.write(JSON.stringify({ error: String(error.message ?? error) }) + '\n');
  }
}
