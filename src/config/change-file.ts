import { randomBytes } from 'node:crypto'
import { readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { parseJsonText } from './json-text.js'
import { type LoadConfigOptions, loadConfig, readConfigText, readText } from './load.js'
import { toIssue } from './problems.js'
import { reasonOf } from './references.js'
import { rewriteJson } from './rewrite-json.js'
import { replaceFile } from './write-file.js'

/**
 * Changes the config file in one step, one process at a time. All that `change` leaves as it is keeps its bytes. The
 * new text is checked before it is written: it holds what was meant, and loads if the old one did.
 * @param change gets the content of the file, and answers with the content that it is to have
 * @param options `onlyCheck`: does all but the last step, to find out beforehand whether the change can be made
 * @throws {LatchkeyError} `config_missing`; `config_invalid` if a change can't be made, or would make the file one that
 * does not load; `output_failed` if somebody else changed it meanwhile. The system's own errors pass through.
 */
export async function changeConfigFile<Changed extends { readonly config: unknown }>(
  path: string,
  env: LoadConfigOptions['env'],
  change: (config: unknown) => Changed,
  { onlyCheck = false }: { readonly onlyCheck?: boolean } = {},
): Promise<Changed> {
  // Says that there is no such file before a lock is made beside it.
  readConfigText(path)
  const file = realpathSync(path)
  const release = await lock(file)
  try {
    const before = readFileSync(file)
    const text = textIn(before, path)
    const changed = change(contentOf(text, path))
    const next = rewriteJson(text, changed.config)
    if (!isDeepStrictEqual(contentOf(next, path), changed.config))
      throw new Error(`the new text of ${path} would not hold what was meant`)
    assertLoads(path, env, text, next)
    if (onlyCheck) return changed
    replaceFile(file, next, {
      unless: () => {
        if (readFileSync(file).equals(before)) return
        const message = `${path} was changed by another program in the meantime and was left alone: run the command again`
        throw new LatchkeyError('output_failed', message)
      },
    })
    return changed
  } finally {
    release()
  }
}

/** Bytes that are no text would be lost. */
function textIn(bytes: Buffer, path: string): string {
  const text = bytes.toString('utf8')
  if (Buffer.from(text).equals(bytes)) return text
  throw new LatchkeyError('config_invalid', `the config file ${path} is not UTF-8 text: save it as UTF-8`)
}

/** Of keys that are given twice, nobody knows which one is to change. */
function contentOf(text: string, path: string): unknown {
  const { value, duplicates, reserved } = parseJsonText(text, path)
  const issues = [...duplicates, ...reserved].map(toIssue)
  if (issues.length === 0) return value
  throw new LatchkeyError('config_invalid', `the config file ${path} can't be changed`, { issues })
}

function assertLoads(path: string, env: LoadConfigOptions['env'], before: string, next: string): void {
  const refused = refusalOf(next)
  if (refused === null || refusalOf(before) !== null) return
  const message = `${path} was not changed, because the change would make it invalid`
  throw new LatchkeyError('config_invalid', message, { cause: refused, issues: refused.issues })

  function refusalOf(text: string): LatchkeyError | null {
    try {
      loadConfig({
        path,
        env,
        secrets: 'when read',
        readFile: (file) => (file === path ? text : readText(file)),
      })
      return null
    } catch (error) {
      if (isLatchkeyError(error)) return error
      throw error
    }
  }
}

/** A lock is held for some milliseconds. One that nobody has changed for so long belonged to a killed process. */
const ABANDONED_AFTER_MS = 5_000
const LOOK_AGAIN_MS = 20

/**
 * Makes this process the only one that changes the file, until it calls what this returns. The lock is a file beside
 * it, made exclusively: unlike locks of the operating system, that works on network file systems and between containers
 * too. (Where two processes remove one abandoned lock at once, the comparison before the rename still separates them.)
 */
async function lock(file: string): Promise<() => void> {
  const path = `${file}.lock`
  const own = randomBytes(12).toString('hex')
  let holder: string | null = null
  let heldSince = performance.now()
  for (;;) {
    try {
      writeFileSync(path, own, { flag: 'wx', mode: 0o600 })
      return () => {
        if (holderOf(path) === own) rmSync(path, { force: true })
      }
    } catch (error) {
      if (reasonOf(error) !== 'EEXIST') throw error
    }
    const found = holderOf(path)
    if (found !== holder) [holder, heldSince] = [found, performance.now()]
    else if (performance.now() - heldSince > ABANDONED_AFTER_MS) rmSync(path, { force: true })
    await wait(LOOK_AGAIN_MS)
  }
}

/** Null: it is gone. */
function holderOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (reasonOf(error) === 'ENOENT') return null
    throw error
  }
}
