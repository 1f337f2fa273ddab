import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { whenTestEnds } from '../world.js'
import { launchChromium } from './chromium.js'
import { PATIENCE_MS } from './eventually.js'

/** One for all files that a process runs: to start one takes longer than many a test. */
let launched: Promise<Browser> | undefined

/** Opens a page in a window of its own, which knows nothing of others, and closes in the end: by default, of the test. */
export async function openPage(
  url: string,
  options?: BrowserContextOptions,
  atEnd = whenTestEnds,
): Promise<Page> {
  launched ??= launchChromium()
  const context = await (await launched).newContext(options)
  context.setDefaultTimeout(PATIENCE_MS)
  atEnd(() => context.close())
  const page = await context.newPage()
  await page.goto(url)
  return page
}
