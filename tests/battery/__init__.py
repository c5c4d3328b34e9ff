"""The battery: damaged files, failing disks, kills, random commands and hostile programs.

python -m tests.battery            # all of it, some minutes
python -m tests.battery formats    # one part

It prints what was tried, what came out clean and what failed, and exits with 1 on any traceback,
hang or silent acceptance. A quick part of it runs with the other tests.
"""
