"""The metadata service: what a guest learns about itself, in the shape of EC2's.

It stands between Neutron's metadata agent and Nova (spec ec2.md section 6):
the agent says, signed, which server asks; the answer is a small tree of texts.
"""
