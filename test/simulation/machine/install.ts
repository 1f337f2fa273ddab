/*
 * Makes this process a machine in which nothing is left to chance: time, randomness, the network, the disk and threads.
 * To be imported before anything else.
 */

import { replaceChance } from './chance.js'
import { replaceDisk } from './disk.js'
import { replaceNetwork } from './network.js'
import { replaceThreads } from './threads.js'
import { replaceTime } from './virtual-time.js'

replaceTime()
replaceChance()
replaceNetwork()
replaceDisk()
replaceThreads()
