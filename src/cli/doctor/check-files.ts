import { realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { readConfigText } from '../../config/load.js'
import type { Config } from '../../config/types.js'
import { erasureListOf } from '../../people/erasure-list.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'
import { type Finding, fail, ok, warn } from './finding.js'

const OTHERS = 0o077
const OTHERS_MAY_WRITE = 0o022
const OTHERS_MAY_ENTER = 0o011

/** Who may read or write the config, the database and the list of erasures, by the modes of the files. */
export function checkFiles(config: Config): readonly Finding[] {
  const { path, database } = config
  const found = [
    checkFile(path, (mode) => {
      if ((mode & OTHERS_MAY_WRITE) !== 0) return ['fail', 'write']
      return holdsSecret(config, readConfigText(path)) ? ['fail', 'read the secrets in'] : ['warn', 'read']
    }),
    ...[database.file, erasureListOf(database.file)].map((file) => checkFile(file, () => ['fail', 'open'])),
  ].filter((finding) => finding !== null)
  return found.length > 0 ? found : [ok('files', 'nobody else may read or write them')]
}

/** Null also where there is no such file: whether there should be one is another check's question. */
function checkFile(path: string, judge: (mode: number) => ['fail' | 'warn', act: string]): Finding | null {
  try {
    const mode = modeOf(path)
    if ((mode & OTHERS) === 0) return null
    const [level, act] = judge(mode)
    // What its folder keeps others from reaching is no failure, whatever its own mode.
    const isShutIn = (modeOf(dirname(realpathSync(path))) & OTHERS_MAY_ENTER) === 0
    const detail = `others may ${act} ${path}, of mode ${(mode & 0o777).toString(8).padStart(4, '0')}`
    return { fail, warn }[isShutIn ? 'warn' : level]('files', detail, `chmod 600 ${path}`)
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    const todo = isOfAnotherUser(error) ? AS_ITS_USER : 'look at its folder'
    return fail('files', `the mode of ${path} can’t be read, ${refusalText(error)}`, todo)
  }
}

function modeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mode ?? 0
}

/** Whether the file itself holds a secret, and not a variable or another file. */
function holdsSecret({ endpoints, sync, provider }: Config, text: string): boolean {
  const webhookSecrets = sync.webhook?.secrets ?? []
  const secrets = [
    ...endpoints.flatMap((endpoint) => endpoint.secrets.map((one) => () => one.secret)),
    ...[sync.discord, sync.telegram].flatMap((bot) => (bot === null ? [] : [() => bot.botToken])),
    ...Object.keys(webhookSecrets).map((index) => () => webhookSecrets[Number(index)]),
    ...(provider === null ? [] : [() => provider.apiKey]),
  ]
  return secrets.some((read) => {
    try {
      return text.includes(JSON.stringify(read()))
    } catch {
      // It can't be read here, and so is somewhere else.
      return false
    }
  })
}
