/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that only the start of a daemon needed. */
#pragma once

/* Gives it back: free heap, and the pages of the program's and its libraries' files, most of which were looked at only to link and to
 * initialise them. A page that is needed after all comes back from the page cache, in about a microsecond. For once, when all is
 * ready. */
void memory_settle(void);
